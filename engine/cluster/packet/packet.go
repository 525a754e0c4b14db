package packet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// shared is what parts of a packet refer to by number.
type shared struct {
	Texts   []string `json:"texts,omitempty"`
	Metas   [][]int  `json:"metas,omitempty"`
	Entries *entries `json:"entries,omitempty"`
}

func (w *writer) shared() shared {
	s := shared{Texts: w.texts, Metas: w.metas}
	if len(w.entries.ID) > 0 {
		s.Entries = &w.entries
	}
	return s
}

func (s shared) reader() *reader {
	r := &reader{texts: s.Texts, metas: s.Metas}
	r.unpack()
	if s.Entries != nil {
		r.entries = *s.Entries
		r.check()
	}
	return r
}

// order is a run.Order. It is written with rows, and read with what these are made of later.
type order[R any] struct {
	shared
	Pass run.Pass `json:"pass,omitempty"`
	Rows []R      `json:"rows"`
}

// maxItems is more than travel together (stage.Gathered). What a reader makes of an item takes
// more memory than the few bytes of one that has nothing.
const maxItems = 1 << 17

// EncodeOrder writes an order. The error says that it is too large.
func EncodeOrder(o run.Order) ([]byte, error) {
	w := newWriter()
	rows := each(o.Rows, w.row)
	if w.err != nil {
		return nil, w.err
	}
	return seal(orders, order[row]{w.shared(), o.Pass, rows})
}

// DecodeOrder reads what EncodeOrder wrote. The error says that something else did, or
// another version of racflow.
func DecodeOrder(data []byte) (run.Order, error) {
	var in order[json.RawMessage]
	if err := open(orders, data, &in); err != nil {
		return run.Order{}, err
	}
	r := in.reader()
	out := run.Order{Pass: in.Pass, Rows: r.rows(in.Rows)}
	if in.Pass > run.Asking {
		r.fail("there is no pass %d", in.Pass)
	}
	if r.err != nil {
		return run.Order{}, r.err
	}
	return out, nil
}

// answered is a run.Answers with its rows.
type answered[R, I any] struct {
	shared
	Rows    []R `json:"rows"`
	Results []I `json:"results,omitzero"`
	state
}

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

// EncodeAnswers writes what became of rows, with the rows: whoever reads it can write the
// output. The error says that it is too large, or has a value that cannot travel.
func EncodeAnswers(rows []source.Row, a run.Answers) ([]byte, error) {
	if len(a.Results) != len(rows) && a.Results != nil {
		return nil, fmt.Errorf("%d results are not those of %d rows", len(a.Results), len(rows))
	}
	w := newWriter()
	out := answered[row, *item]{Rows: each(rows, w.row), state: w.state(a)}
	if a.Results != nil {
		out.Results = make([]*item, len(rows))
	}
	for i := range a.Results {
		out.Results[i] = w.result(&a.Results[i], rows[i])
	}
	if w.err != nil {
		return nil, w.err
	}
	out.shared = w.shared()
	return seal(answers, out)
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

// DecodeAnswers reads what EncodeAnswers wrote. The error says that something else did, or
// another version of racflow.
func DecodeAnswers(data []byte) ([]source.Row, run.Answers, error) {
	var in answered[json.RawMessage, json.RawMessage]
	if err := open(answers, data, &in); err != nil {
		return nil, run.Answers{}, err
	}
	r := in.reader()
	rows := r.rows(in.Rows)
	out := r.state(&in.state, len(rows))
	out.Results = r.results(in.Results, rows)
	if r.err != nil {
		return nil, run.Answers{}, r.err
	}
	return rows, out, nil
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
