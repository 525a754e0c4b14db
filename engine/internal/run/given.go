package run

import (
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/result"
)

// earlier sets the answers that the journal has from an earlier part of the run.
func (r *Run) earlier(journal Journal, records ...*stage.Record) {
	if journal == nil {
		return
	}
	for _, rec := range records {
		if !rec.Unanswered() {
			continue
		}
		if result, ok := journal.Answered(rec.Row); ok {
			rec.Given = &stage.Given{From: stage.Earlier, Result: result}
		}
	}
}

// reviewed sets the answers that people decided.
func (r *Run) reviewed(records ...*stage.Record) {
	decisions := r.graph.Decisions()
	for _, rec := range records {
		if !rec.Unanswered() {
			continue
		}
		if d, ok := decisions.Find(rec.Row.Text); ok {
			by := &result.Decision{By: d.Reviewer, At: d.ReviewedAt}
			rec.Given = &stage.Given{From: stage.Person, Result: outcome.Result{Verdict: result.Verdict{Decided: by, Agreement: 1, Confidence: 1, Reason: by.String()}, Answer: d.Label}}
		}
	}
}
