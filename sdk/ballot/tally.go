package ballot

import (
	"cmp"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// Tally sums weights by label. The zero Tally is empty and ready.
type Tally struct {
	answers []sdk.Answer // in the order in which labels were first added
	index   map[string]int32
}

// minIndexed is the number of labels from which an index of them pays.
const minIndexed = 16

// Grow makes room for that many more labels.
func (t *Tally) Grow(labels int) {
	t.answers = slices.Grow(t.answers, labels)
	if t.index == nil && cap(t.answers) > minIndexed {
		t.index = make(map[string]int32, cap(t.answers))
		for i := range t.answers {
			t.index[t.answers[i].Label] = int32(i)
		}
	}
}

// Add gives weight to a label; the empty one is a vote for no label. A weight
// that is not positive and finite counts for nothing.
func (t *Tally) Add(label string, weight float64) {
	if !counts(weight) {
		return
	}
	i := t.find(label)
	if i < 0 {
		if t.index == nil && len(t.answers) == minIndexed {
			t.Grow(minIndexed)
		}
		i = len(t.answers)
		if t.index != nil {
			t.index[label] = int32(i)
		}
		t.answers = append(t.answers, sdk.Answer{Label: label})
	}
	t.answers[i].Weight += weight
}

// find returns the index of a label among the answers, or -1.
func (t *Tally) find(label string) int {
	if t.index != nil {
		if i, ok := t.index[label]; ok {
			return int(i)
		}
		return -1
	}
	for i := range t.answers {
		if t.answers[i].Label == label {
			return i
		}
	}
	return -1
}

func counts(weight float64) bool { return weight > 0 && !math.IsInf(weight, 0) }

// Shares returns the labels with their shares of the whole weight, best
// first; labels that tie stand in the order in which they were first added.
// Shares closer than about 1e-9 tie, so that rounding decides no election.
func (t *Tally) Shares() []sdk.Answer {
	total := 0.0
	for _, a := range t.answers {
		total += a.Weight
	}
	type entry struct {
		share float64 // of the whole, in units of 1e-9
		at    int32   // among the answers
	}
	order := make([]entry, len(t.answers))
	for i, a := range t.answers {
		order[i] = entry{math.Round(a.Weight / total * 1e9), int32(i)}
	}
	slices.SortFunc(order, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.at, b.at))
	})
	shares := make([]sdk.Answer, len(order))
	for i, o := range order {
		shares[i] = t.answers[o.at]
		shares[i].Weight /= total
	}
	return shares
}

// Softmax returns weights in proportion to exp(sharpness * score), which sum
// to 1. Sharpness 0 makes them all equal. Scores must be finite.
func Softmax(scores []float32, sharpness float64) []float64 {
	if len(scores) == 0 {
		return nil
	}
	best := float64(slices.Max(scores))
	weights := make([]float64, len(scores))
	sum := 0.0
	for i, s := range scores {
		weights[i] = math.Exp(sharpness * (float64(s) - best)) // at most 1: no overflow
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}
