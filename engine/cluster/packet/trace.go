package packet

import "github.com/racflow/racflow/engine/outcome"

func (w *writer) rules(all []outcome.Rule) []int {
	return flat(all, func(out []int, one outcome.Rule) []int {
		return append(out, w.text(one.Stage), w.text(one.Rule), one.N, one.Of, w.text(one.Name), w.text(one.Why))
	})
}

func (r *reader) rules(in []int) []outcome.Rule {
	return unflat(r, "rules", in, 6, func(one []int) outcome.Rule {
		return outcome.Rule{Stage: r.text(one[0]), Rule: r.text(one[1]), N: one[2], Of: one[3], Name: r.text(one[4]), Why: r.text(one[5])}
	})
}

func (w *writer) retries(all []outcome.Retry) []int {
	return flat(all, func(out []int, one outcome.Retry) []int {
		return append(out, w.text(one.Stage), w.text(one.Why), one.Times)
	})
}

func (r *reader) retries(in []int) []outcome.Retry {
	return unflat(r, "retries", in, 3, func(one []int) outcome.Retry {
		return outcome.Retry{Stage: r.text(one[0]), Why: r.text(one[1]), Times: one[2]}
	})
}
