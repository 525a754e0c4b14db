package packet

import (
	"slices"

	"github.com/racflow/racflow/engine/outcome"
)

func (w *writer) rules(all []outcome.Rule) []int {
	if all == nil {
		return nil
	}
	out := make([]int, 0, 6*len(all))
	for _, one := range all {
		out = append(out, w.text(one.Stage), w.text(one.Rule), one.N, one.Of, w.text(one.Name), w.text(one.Why))
	}
	return out
}

func (r *reader) rules(in []int) []outcome.Rule {
	if in == nil || !r.tuples("rules", in, 6) {
		return nil
	}
	all := make([]outcome.Rule, 0, len(in)/6)
	for one := range slices.Chunk(in, 6) {
		all = append(all, outcome.Rule{Stage: r.text(one[0]), Rule: r.text(one[1]), N: one[2], Of: one[3], Name: r.text(one[4]), Why: r.text(one[5])})
	}
	return all
}

func (w *writer) retries(all []outcome.Retry) []int {
	if all == nil {
		return nil
	}
	out := make([]int, 0, 3*len(all))
	for _, one := range all {
		out = append(out, w.text(one.Stage), w.text(one.Why), one.Times)
	}
	return out
}

func (r *reader) retries(in []int) []outcome.Retry {
	if in == nil || !r.tuples("retries", in, 3) {
		return nil
	}
	all := make([]outcome.Retry, 0, len(in)/3)
	for one := range slices.Chunk(in, 3) {
		all = append(all, outcome.Retry{Stage: r.text(one[0]), Why: r.text(one[1]), Times: one[2]})
	}
	return all
}
