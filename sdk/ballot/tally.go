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
	index   map[string]int
}

// Add gives weight to a label. An empty label and a weight that is not
// positive and finite count for nothing.
func (t *Tally) Add(label string, weight float64) {
	if !counts(label, weight) {
		return
	}
	i, ok := t.index[label]
	if !ok {
		if t.index == nil {
			t.index = map[string]int{}
		}
		i = len(t.answers)
		t.index[label] = i
		t.answers = append(t.answers, sdk.Answer{Label: label})
	}
	t.answers[i].Weight += weight
}

func counts(label string, weight float64) bool {
	return label != "" && weight > 0 && !math.IsInf(weight, 0)
}

// Shares returns the labels with their shares of the whole weight, best
// first; labels that tie stand in the order in which they were first added.
// Shares closer than about 1e-9 tie, so that rounding decides no election.
func (t *Tally) Shares() []sdk.Answer {
	total := 0.0
	for _, a := range t.answers {
		total += a.Weight
	}
	shares := slices.Clone(t.answers)
	for i := range shares {
		shares[i].Weight /= total
	}
	slices.SortStableFunc(shares, func(a, b sdk.Answer) int {
		return cmp.Compare(math.Round(b.Weight*1e9), math.Round(a.Weight*1e9))
	})
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
