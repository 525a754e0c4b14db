package run

import (
	"slices"

	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk/ballot"
)

// stop notes that a stage has to stop. It is not called again. Where the election
// can be held without it, the run reads on; else it ends.
func (r *Run) stop(s *stage, cause error) {
	s.ending.begin(cause)
	s.stopped.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil {
		r.lost = make([]bool, len(r.stages))
	}
	if !r.lost[s.index] {
		r.lost[s.index] = true
		r.halt = append(r.halt, &Failure{Stage: s.String(), Err: cause})
	}
	if r.readsOn() {
		return
	}
	r.ending.begin(cause)
	for _, s := range r.stages {
		if s != nil {
			s.ending.begin(cause)
			for _, f := range s.fallbacks {
				f.ending.begin(cause)
			}
		}
	}
}

// readsOn reports whether the election can be held without the stages that are lost
// and those that need them. The caller holds mu.
func (r *Run) readsOn() bool {
	if r.strict || r.elect < 0 {
		return false
	}
	gone := func(i int) bool {
		return r.lost[i] || slices.ContainsFunc(r.stages[i].in.needs, func(n int) bool { return r.lost[n] })
	}
	e := r.stages[r.elect]
	if r.lost[r.elect] || slices.ContainsFunc(e.in.firm, gone) {
		return false
	}
	return slices.ContainsFunc(e.in.voters, func(v int) bool { return !gone(v) && !r.stages[v].abstains() })
}

// names reports whether a rule of an election asks what a certain voter answered.
func (s *stage) names(voter *stage) bool {
	return slices.ContainsFunc([]*rule.Rule{s.When, s.Accept, s.Flag}, func(r *rule.Rule) bool {
		return r.Reads("votes") && r.Mentions(voter.Name)
	})
}

// idle reports whether nothing reads the prompts of the stage any more.
func (s *stage) idle() bool {
	return len(s.readers) > 0 && !slices.ContainsFunc(s.readers, func(r *stage) bool { return !r.stopped.Load() })
}

// lacks returns what the stage lacks for an item because another one is stopped;
// nil: nothing.
func (s *stage) lacks(rec *record) *Failure {
	if s.Block == "elect" {
		return rec.missing(s.in.firm)
	}
	return rec.missing(s.in.needs)
}

// asks reports whether the when rule of a stage can be asked about an item,
// although the stage lacks something: what the rule reads is there.
func (s *stage) asks(rec *record) bool {
	var reads []int
	if s.When.Reads("margin") || s.When.Reads("agreement") || s.When.Reads("votes") {
		reads = append(reads, s.in.voters...)
	}
	if s.in.found >= 0 && (s.When.Reads("candidates") || s.When.Reads("candidate_labels")) {
		reads = append(reads, s.in.found)
	}
	return rec.missing(reads) == nil
}

// missing returns the first of the given stages that is missing for the item.
func (r *record) missing(stages []int) *Failure {
	for _, i := range stages {
		if f := r.outputs[i].missing; f != nil {
			return f
		}
	}
	return nil
}

// without returns the voters that are missing for an item, and whether it is left
// for another run: without them there is no answer to it, or none is wanted.
func (r *Run) without(rec *record) (voters []*Failure, left bool) {
	if r.strict || r.elect < 0 {
		return nil, slices.ContainsFunc(rec.outputs, func(o output) bool { return o.missing != nil })
	}
	for _, v := range r.voters {
		if f := rec.outputs[v].missing; f != nil {
			voters = append(voters, f)
		}
	}
	decided := rec.verdict.Answer != "" || rec.verdict.Reason == ballot.NoLabelFits || rec.verdict.Reason == notAnswered
	return voters, rec.outputs[r.elect].missing != nil || len(voters) > 0 && !decided
}
