package eval

import (
	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/outcome"
)

// Promised is what was promised of the answers that are not flagged, and what became of
// it on these items.
type Promised struct {
	Accuracy   float64 `json:"accuracy"` // at least, of the answers that are not flagged
	Confidence float64 `json:"confidence"`
	Answered   int     `json:"answered"` // of the scored items, without a flag
	Right      int     `json:"right"`    // of Answered
	// Interval is that of Right among Answered. The promise is broken where all of it is
	// below Accuracy, and kept where all of it is above.
	Interval interval.Interval `json:"interval"`

	// Caught is the share of the items out of scope that is flagged or left without an
	// answer, at least; 0: nothing was promised about them.
	Caught         float64           `json:"caught,omitempty"`
	Outside        int               `json:"out,omitempty"`        // items out of scope
	CaughtOf       int               `json:"out_caught,omitempty"` // of Outside
	CaughtInterval interval.Interval `json:"out_caught_interval,omitzero"`

	counter *Counter
}

// NewPromised returns what is to be measured of a promise, where the knowledge has these
// labels.
func NewPromised(accuracy, confidence, caught float64, labels ...string) *Promised {
	return &Promised{Accuracy: accuracy, Confidence: confidence, Caught: caught, counter: NewCounter(labels...)}
}

// Add counts one result. Those that failed say nothing about answers.
func (p *Promised) Add(r outcome.Result) {
	if p == nil || !Scored(r) || r.Failure != nil {
		return
	}
	answered := r.Answer != "" && !r.Flagged
	if answered {
		p.Answered++
		if p.counter.Right(r) {
			p.Right++
		}
	}
	if p.counter.Outside(r) {
		if p.Outside++; !answered {
			p.CaughtOf++
		}
	}
	p.Interval, p.CaughtInterval = interval.Wilson(p.Right, p.Answered), interval.Wilson(p.CaughtOf, p.Outside)
}
