package stage

import (
	"context"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// trace is what happened to an item at a stage, beside what the stage wrote.
type trace struct {
	rules   []outcome.Rule
	retries []outcome.Retry
}

// maxRetries is how many causes of one stage are told apart for an item.
const maxRetries = 4

// note notes that a rule of a stage decided something about the item.
func (r *Record) note(s *stage, rule outcome.Rule) {
	rule.Stage = s.name
	rules := &r.outputs[s.index].rules
	for i := range *rules {
		if old := &(*rules)[i]; old.Stage == rule.Stage && old.Rule == rule.Rule { // of answers that the stage was asked for again
			old.N, old.Of = old.N+rule.N, old.Of+rule.Of
			return
		}
	}
	*rules = append(*rules, rule)
}

// noted reports whether a rule of a stage has decided something about the item.
func (r *Record) noted(s *stage, rule string) bool {
	return slices.ContainsFunc(r.outputs[s.index].rules, func(old outcome.Rule) bool { return old.Stage == s.name && old.Rule == rule })
}

// retried notes that a stage is called again about the item.
func (r *Record) retried(s *stage, why string) {
	all := &r.outputs[s.index].retries
	for i := range *all {
		if old := &(*all)[i]; old.Stage == s.name && (old.Why == why || i == maxRetries-1) {
			old.Times++
			return
		}
	}
	*all = append(*all, outcome.Retry{Stage: s.name, Why: why, Times: 1})
}

// noting returns a call of the stage that notes which of the records it is made again for.
func (s *stage) noting(records []*Record, call func(context.Context, []int) error) func(context.Context, []int) error {
	var failed map[int]error // by position, when it was last called
	return func(ctx context.Context, at []int) error {
		if failed != nil {
			for _, n := range at {
				if err := failed[n]; err != nil {
					records[n].retried(s, outcome.Why(err))
				}
			}
		}
		err := call(ctx, at)
		if err == nil {
			return nil
		}
		if failed == nil {
			failed = map[int]error{}
		}
		var rows sdk.RowErrors
		single := errors.As(err, &rows)
		for i, n := range at {
			if failed[n] = err; single {
				failed[n] = rows[i]
			}
		}
		return err
	}
}

// trace adds to a result what decided it.
func (g *Graph) trace(rec *Record, result *outcome.Result) {
	lists := 0
	for _, s := range g.stages {
		if s != nil && (s.Retrieve != nil || s.Kind == sdk.KindRerank) {
			lists++
		}
	}
	result.Lists = make([]outcome.List, 0, lists)
	for i, s := range g.stages {
		if s == nil {
			continue
		}
		out := &rec.outputs[i]
		if s.Retrieve != nil || s.Kind == sdk.KindRerank {
			result.Lists = append(result.Lists, outcome.List{Stage: s.name, Candidates: out.candidates, Whole: s.whole.is(out.candidates)})
		}
		result.Rules, result.Retries = append(result.Rules, out.rules...), append(result.Retries, out.retries...)
		if f := out.skipped; f != nil && !out.refused {
			result.Rules = append(result.Rules, outcome.Rule{Stage: s.name, Rule: outcome.RuleOnError, Why: outcome.Why(f.Err)})
		}
	}
}
