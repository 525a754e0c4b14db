package ballot

import (
	"slices"

	"github.com/racflow/racflow/sdk"
)

// Mean returns the mean ballot of all voters that gave at least one accepted
// answer: labels with their shares, best first, summing to 1; empty if there
// is no such voter. Labels that tie stand in the order of the voters, and
// within a voter in the order of its answers.
//
// The accepted answers of a sample are normalised to 1, a voter's ballot is
// the average of its samples that have any, and the mean is weighted by the
// voters' weights.
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

// accepted is the weight of the accepted answers that Tally.Add would count.
func accepted(s sdk.Sample) float64 {
	sum := 0.0
	for _, a := range s.Answers {
		if a.Accepted && counts(a.Weight) {
			sum += a.Weight
		}
	}
	return sum
}

// Agreement is the best share of a ballot as Mean or Shares returns it; 0 if
// it is empty.
func Agreement(shares []sdk.Answer) float64 {
	if len(shares) == 0 {
		return 0
	}
	return shares[0].Weight
}

// Margin is the best share less the second best; 0 if the ballot is empty.
func Margin(shares []sdk.Answer) float64 {
	if len(shares) < 2 {
		return Agreement(shares)
	}
	return shares[0].Weight - shares[1].Weight
}

// Best returns the label of a sample's best accepted answer: its vote, where each sample
// has one.
func Best(s sdk.Sample) (label string, ok bool) {
	for _, a := range s.Answers {
		if a.Accepted {
			return a.Label, true
		}
	}
	return "", false
}

// NoLabelFits is the reason of a verdict where that wins.
const NoLabelFits = "the voters say that none of the labels fits"

// Verdict elects the best of a ballot; its share is the agreement.
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

// Weighed is Verdict for the weighted shares of samples, with another reason where the
// only acceptable answers are of voters with weight 0.
func Weighed(shares []sdk.Answer, samples []sdk.Sample) sdk.Verdict {
	if len(shares) == 0 && slices.ContainsFunc(samples, func(s sdk.Sample) bool { return accepted(s) > 0 }) {
		return sdk.Verdict{Reason: "every voter that gave an acceptable answer has weight 0"}
	}
	return Verdict(shares)
}
