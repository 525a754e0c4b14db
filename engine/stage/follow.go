package stage

import (
	"fmt"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// Step is what one stage made of an item.
type Step struct {
	Stage      string          // as "sample.knn"
	Took       time.Duration   // of its batch
	Candidates []sdk.Candidate // of a retrieve or rerank stage, with texts
	Votes      []outcome.Vote  // of a voter
	Skipped    string          // why it made nothing of the item; empty: it did
}

// Follow has each called as soon as a stage is done with the item, by several goroutines at once.
// It is set before the item's way begins.
func (r *Record) Follow(each func(Step)) { r.follow, r.texts = each, true }

// tell says to those who follow records that the stage is done with them.
func (s *stage) tell(records []*Record, took time.Duration) {
	for _, rec := range records {
		if rec.follow == nil {
			continue
		}
		step, out := Step{Stage: s.String(), Took: took, Skipped: s.why(rec)}, &rec.outputs[s.index]
		if s.Retrieve != nil || s.Kind == sdk.KindRerank {
			step.Candidates = slices.Clone(out.candidates)
		}
		if s.Kind == sdk.KindSample {
			step.Votes = votes(clone(out.samples)) // an election marks those that it does not accept
		}
		rec.follow(step)
	}
}

// why is the reason for which a stage made nothing of an item; empty: it did.
func (s *stage) why(rec *Record) string {
	out := &rec.outputs[s.index]
	switch above := rec.failure(s.in.needs); {
	case out.failure != nil:
		return out.failure.Error()
	case out.skipped != nil:
		return out.skipped.Error()
	case out.missing != nil:
		return out.missing.Error()
	case above != nil:
		return fmt.Sprintf("%s failed before", above.Stage)
	case out.idle:
		return "its when rule does not hold"
	case out.withheld:
		return "what may be spent does not go to this item"
	case s.idle():
		return "nothing reads what it writes any more"
	}
	return ""
}
