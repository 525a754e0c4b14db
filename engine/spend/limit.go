package spend

import (
	"errors"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Limit is what a run may spend on voters that call services: one of its fields is set.
// The zero Limit is none.
type Limit struct {
	Calls *int     `json:"calls,omitempty"`
	Money *float64 `json:"money,omitempty"` // by the prices in the file
}

// IsSet reports whether there is a limit.
func (l Limit) IsSet() bool { return l.Calls != nil || l.Money != nil }

// Amount is the limit as a number, of calls or of money.
func (l Limit) Amount() float64 {
	if l.Calls != nil {
		return float64(*l.Calls)
	}
	return *l.Money
}

// likely is what an item probably takes.
func (l Limit) likely(b outcome.Bill) float64 {
	if l.Calls != nil {
		return float64(b.Calls)
	}
	return b.Cost
}

// most is what an item takes at most, if anybody knows that.
func (l Limit) most(b outcome.Bill) float64 {
	if l.Calls != nil {
		return float64(b.Calls)
	}
	return max(b.Cost, b.Most)
}

// unbounded reports whether nobody knows what an item takes at most.
func (l Limit) unbounded(b outcome.Bill) bool { return l.Calls == nil && b.Unbounded }

// Paid reports whether a stage is a voter that calls a service.
func Paid(s *pipeline.Stage) bool {
	return s.Enabled && s.Kind == sdk.KindSample && s.Info.Network
}

// Check says why there is nothing to spend on in a pipeline, or nobody to answer the items
// that are not asked; nil: neither.
func Check(p *pipeline.Pipeline) error {
	paid, free := false, false
	for i, s := range p.Stages {
		if s.Block == "sample" && s.Enabled && p.Used(i) {
			paid, free = paid || Paid(s), free || !Paid(s)
		}
	}
	switch {
	case !paid:
		return errors.New("no voter calls a service, so there is nothing to spend")
	case !free:
		return errors.New("every voter calls a service, so nobody would answer the items that are not sent: add a voter that calls none, such as neighbours, or take fewer items with Options.Limit")
	}
	return nil
}
