package build

import (
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/sdk"
)

// measure says how far a walk through units is: in bytes where they are documents, one of
// which may be larger than all others together, and else in rows.
type measure struct {
	step  progress.Step
	size  func(id string) int64 // of a unit
	ended int64                 // of the units that have ended
	at    string                // the unit whose entries came last
	open  int64                 // bytes of these
}

func (b *builder) measure(doing string, of []units.Unit) *measure {
	m := &measure{step: progress.Step{Doing: doing, Name: b.Block.Name, Unit: "row", Total: int64(len(of))}}
	if m.size = b.Source.Size; b.Block.Documents() == nil {
		m.size = func(string) int64 { return 1 }
		return m
	}
	m.step.Unit, m.step.Total = progress.Bytes, 0
	for _, u := range of {
		m.step.Total += m.size(u.ID)
	}
	return m
}

// add counts entries that are done, and the units that have ended with them. A document
// counts as the bytes of its file, whatever part of them is text; one that has not ended, as
// those of its entries so far, but no more than that.
func (m *measure) add(entries []sdk.Entry, ended ...string) progress.Step {
	for _, e := range entries {
		if id := units.DocumentOf(e); id != m.at {
			m.at, m.open = id, 0
		}
		m.open += int64(len(e.Text))
	}
	for _, id := range ended {
		m.ended += m.size(id)
		if id == m.at {
			m.at, m.open = "", 0
		}
	}
	done := m.ended
	if m.step.Unit == progress.Bytes {
		m.step.Passages += int64(len(entries))
		if m.at != "" {
			done += min(m.open, m.size(m.at))
		}
	}
	m.step.Done = max(m.step.Done, done)
	return m.step
}
