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

// Mean returns the mean ballot of all voters that gave at least one accepted answer: labels with
// their shares, best first, summing to 1. It is empty if there is no such voter. Labels with equal
// shares stand in the order of the voters, and within a voter in the order of its answers.
//
// Mean normalises the accepted answers of a sample to 1. A voter's ballot is the average of its
// samples that have an accepted answer. The mean of the ballots is weighted by the voters' weights.
func Mean(samples []sdk.Sample, weights Weights) []sdk.Answer {
	counted := map[string]int{} // samples with an accepted answer, by voter
	labels := 0
	for _, s := range samples {
		labels = max(labels, len(s.Answers))
		if accepted(s) > 0 {
			counted[s.Voter]++
		}
	}
	var sum Tally
	sum.Grow(labels)
	for _, s := range samples {
		whole := accepted(s) * float64(counted[s.Voter])
		for _, a := range s.Answers {
			if a.Accepted {
				sum.Add(a.Label, weights.Of(s.Voter)*a.Weight/whole)
			}
		}
	}
	return sum.Shares()
}

// accepted returns the weight of the accepted answers that Tally.Add would count.
func accepted(s sdk.Sample) float64 {
	sum := 0.0
	for _, a := range s.Answers {
		if a.Accepted && counts(a.Weight) {
			sum += a.Weight
		}
	}
	return sum
}

// Agreement returns the best share of a ballot that Mean or Shares returned; 0 if the ballot is
// empty.
func Agreement(shares []sdk.Answer) float64 {
	if len(shares) == 0 {
		return 0
	}
	return shares[0].Weight
}

// Margin returns the best share minus the second best; 0 if the ballot is empty.
func Margin(shares []sdk.Answer) float64 {
	if len(shares) < 2 {
		return Agreement(shares)
	}
	return shares[0].Weight - shares[1].Weight
}

// Best returns the label of a sample's best accepted answer. That is its vote if each sample has one
// vote.
func Best(s sdk.Sample) (label string, ok bool) {
	for _, a := range s.Answers {
		if a.Accepted {
			return a.Label, true
		}
	}
	return "", false
}

// NoLabelFits is the reason of a verdict in which "none of the labels fits" wins.
const NoLabelFits = "the voters say that none of the labels fits"

// Verdict elects the best label of a ballot; its share is the agreement.
func Verdict(shares []sdk.Answer) sdk.Verdict {
	if len(shares) == 0 {
		return sdk.Verdict{Reason: "no voter gave an acceptable answer"}
	}
	v := sdk.Verdict{Answer: shares[0].Label, Agreement: Agreement(shares)}
	if v.Answer == "" {
		v.Reason = NoLabelFits
	}
	return v
}

// Weighed is Verdict for weighted shares. If all acceptable answers come from voters with weight 0, the
// verdict's reason says so.
func Weighed(shares []sdk.Answer, samples []sdk.Sample) sdk.Verdict {
	if len(shares) == 0 && slices.ContainsFunc(samples, func(s sdk.Sample) bool { return accepted(s) > 0 }) {
		return sdk.Verdict{Reason: "every voter that gave an acceptable answer has weight 0"}
	}
	return Verdict(shares)
}

// Grow makes room for a number of labels.
func (t *Tally) Grow(labels int) {
	t.answers = slices.Grow(t.answers, labels)
	if t.index == nil {
		t.index = make(map[string]int, labels)
	}
}

// Add gives weight to a label; the empty label is a vote for "none of the labels fits". A weight that
// is not positive and finite does not count.
func (t *Tally) Add(label string, weight float64) {
	if !counts(weight) {
		return
	}
	i, ok := t.index[label]
	if !ok {
		t.Grow(1)
		i = len(t.answers)
		t.index[label] = i
		t.answers = append(t.answers, sdk.Answer{Label: label})
	}
	t.answers[i].Weight += weight
}

func counts(weight float64) bool { return weight > 0 && !math.IsInf(weight, 0) }

// Shares returns the labels with their shares of the total weight, best first. Labels with equal
// shares stand in the order in which they were first added. Shares closer than about 1e-9 count as
// equal, so that rounding decides no election.
func (t *Tally) Shares() []sdk.Answer {
	total := 0.0
	for _, a := range t.answers {
		total += a.Weight
	}
	type entry struct {
		share float64 // of the total weight, in units of 1e-9
		at    int32   // index into the answers
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

// Softmax returns weights in proportion to exp(sharpness * score), which sum to 1. With sharpness 0,
// all weights are equal. Scores must be finite.
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

// Weights maps the names of voters' blocks to their weights. A voter without an entry has weight 1; a
// voter with weight 0 does not vote.
type Weights map[string]float64

// Of returns the weight of a voter.
func (w Weights) Of(voter string) float64 {
	if weight, ok := w[voter]; ok {
		return weight
	}
	return 1
}

// Unmeasured returns the assumed accuracy of a voter whose accuracy was not measured: half way
// between chance and certainty.
func Unmeasured(labels int) float64 { return (1/float64(max(2, labels)) + 1) / 2 }

// maxAccuracy is the greatest accuracy that counts: a voter without a mistake on a small file is not
// infallible.
const maxAccuracy = 0.999

// Worth returns the weight of a vote by a voter that is right on a share p of the items, with the
// given number of labels (at least 2):
//
//	log((labels - 1) * p / (1 - p))
//
// Votes with these weights elect the likeliest label if three things hold: voters err independently
// of each other, every wrong label is equally likely, and labels are equally frequent. For two labels
// this is the optimal rule of Nitzan and Paroush, "Optimal decision rules in uncertain dichotomous
// choice situations", International Economic Review 23(2), 1982. For more labels it is the rule of
// Kuncheva and Rodríguez, "A weighted voting framework for classifiers ensembles", Knowledge and
// Information Systems 38, 2014.
//
// Accuracies above 0.999 count as 0.999. A voter that is no better than chance has weight 0, not a
// negative weight.
func Worth(p float64, labels int) float64 {
	p = min(p, maxAccuracy)
	return max(0, math.Log(float64(max(2, labels)-1)*p/(1-p)))
}
