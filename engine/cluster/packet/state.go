package packet

import (
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/run"
)

// state is what answers say beside the results.
type state struct {
	Left          map[int]*fault `json:"left,omitzero"`
	Bills         map[int]*bill  `json:"bills,omitzero"`
	Halted        []*failure     `json:"halted,omitzero"`
	Ended         *fault         `json:"ended,omitempty"`
	Distributions []int          `json:"distributions,omitzero"`
	Times         []times        `json:"times,omitzero"`
}

// times is an outcome.StageTime.
type times struct {
	Stage int           `json:"stage"`
	Rows  int           `json:"rows"`
	Busy  time.Duration `json:"busy"`
}

func (w *writer) state(a run.Answers) state {
	s := state{
		Halted: each(a.Halted, w.failure), Ended: w.fault(a.Ended), Distributions: each(a.Distributions, w.text),
		Times: each(a.Times, func(t outcome.StageTime) times { return times{w.text(t.Stage), t.Rows, t.Busy} }),
	}
	if a.Left != nil {
		s.Left = map[int]*fault{}
	}
	for _, at := range slices.Sorted(maps.Keys(a.Left)) { // texts have their numbers in this order
		s.Left[at] = w.fault(a.Left[at])
	}
	if a.Bills != nil {
		s.Bills = map[int]*bill{}
	}
	for at, b := range a.Bills {
		s.Bills[at] = billOf(&b)
	}
	return s
}

func (r *reader) state(in *state, rows int) run.Answers {
	out := run.Answers{
		Halted: each(in.Halted, r.some), Ended: r.fault(in.Ended), Distributions: each(in.Distributions, r.text),
		Times: each(in.Times, func(t times) outcome.StageTime {
			return outcome.StageTime{Stage: r.text(t.Stage), Rows: t.Rows, Busy: t.Busy}
		}),
	}
	if in.Left != nil {
		out.Left = make(map[int]error, len(in.Left))
	}
	for at, f := range in.Left {
		if out.Left[at] = r.fault(f); f == nil || at < 0 || at >= rows {
			r.fail("item %d of %d is left for no reason", at, rows)
		}
	}
	if in.Bills != nil {
		out.Bills = make(map[int]outcome.Bill, len(in.Bills))
	}
	for at, b := range in.Bills {
		if b == nil || at < 0 || at >= rows {
			r.fail("item %d of %d has no bill", at, rows)
			continue
		}
		out.Bills[at] = *r.bill(b)
	}
	return out
}
