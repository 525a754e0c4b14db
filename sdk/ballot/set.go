package ballot

import (
	"cmp"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// MeanSet returns the shares of labels if an answer is a set. A label's share is the mean, over the
// voters that gave an accepted answer, of the average weight that the voter's samples give the label,
// at most 1. Shares are from 0 to 1, and do not sum to 1. They are sorted, the greatest first; labels
// with equal shares stand in the order of the voters.
func MeanSet(samples []sdk.Sample, weights Weights) []sdk.Answer {
	counted := map[string]int{}
	whole := 0.0
	for _, s := range samples {
		if accepted(s) > 0 {
			if counted[s.Voter]++; counted[s.Voter] == 1 {
				whole += weights.Of(s.Voter)
			}
		}
	}
	var sum Tally
	for _, s := range samples {
		for _, a := range s.Answers {
			if a.Accepted && whole > 0 {
				sum.Add(a.Label, weights.Of(s.Voter)*min(a.Weight, 1)/whole/float64(max(counted[s.Voter], 1)))
			}
		}
	}
	all := slices.Clone(sum.answers)
	slices.SortStableFunc(all, func(a, b sdk.Answer) int { return cmp.Compare(round(b.Weight), round(a.Weight)) })
	return all
}

// round removes rounding errors, so that they break no tie.
func round(share float64) float64 { return math.Round(share * 1e9) }

// MarginSet returns the distance from one half of the share that is nearest to it, scaled to 0 to 1.
// If an election is in doubt about one label, it is in doubt about the set. 0 if nobody voted.
func MarginSet(shares []sdk.Answer) float64 {
	margin := 1.0
	for _, a := range shares {
		margin = min(margin, math.Abs(2*a.Weight-1))
	}
	if len(shares) == 0 {
		return 0
	}
	return margin
}

// VerdictSet elects the labels with a share of at least threshold, and always the first label. It
// elects no label if "none of the labels fits" has the greatest share. The agreement is the mean of
// the elected shares.
func VerdictSet(shares []sdk.Answer, threshold float64) sdk.Verdict {
	if len(shares) == 0 {
		return Verdict(nil)
	}
	if shares[0].Label == "" {
		return sdk.Verdict{Answer: sdk.NoLabels, Agreement: min(shares[0].Weight, 1)}
	}
	var v sdk.Verdict
	var labels []string
	for i, a := range shares {
		if a.Label != "" && (i == 0 || a.Weight >= threshold) {
			labels = append(labels, a.Label)
			v.Agreement += a.Weight
		}
	}
	v.Answer, v.Agreement = sdk.JoinLabels(labels), min(v.Agreement/float64(len(labels)), 1)
	return v
}
