package ballot

import (
	"cmp"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// MeanSet returns the shares of labels where an answer is a set: for each label the mean, over the
// voters that gave an accepted answer, of the weight that the voter's samples give it on average,
// at most 1. Shares are from 0 to 1, and do not sum to 1. The greatest stands first; labels that
// tie stand in the order of the voters.
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

// round drops what rounding adds, so that it breaks no tie.
func round(share float64) float64 { return math.Round(share * 1e9) }

// MarginSet is how far the label whose share is nearest to one half is from that, from 0 to 1: in
// doubt about one label, an election is in doubt about the set. 0 if nobody voted.
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

// VerdictSet elects the labels with a share of at least threshold, and always the first; no label, if
// that none fits has the greatest share. The agreement is the mean of their shares.
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
