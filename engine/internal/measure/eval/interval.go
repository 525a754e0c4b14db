package eval

import (
	"encoding/json"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// This file measures how far chance alone can move a measured share, or the difference of two
// shares measured on the same items.
//
// A share gets the score interval (Wilson, "Probable inference, the law of succession, and
// statistical inference", JASA 22:209-212, 1927), which is close to its level on average and stays
// within 0 and 1. A promise needs a bound that holds whatever the true share is: AtLeast and AtMost
// are exact (Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case
// of the binomial", Biometrika 26:404-413, 1934).
//
// Two ways to answer the same items differ only on items that exactly one way gets right. The
// difference of their accuracies gets the score interval for paired proportions (Tango,
// "Equivalence test and confidence interval for the difference in proportions for the paired-sample
// design", Statistics in Medicine 17:891-908, 1998), and the exact sign test (McNemar, "Note on the
// sampling error of the difference between correlated proportions or percentages", Psychometrika
// 12:153-157, 1947, with the binomial in place of its approximation).
//
// All methods assume that items are independent draws of what the pipeline will see. None corrects
// for choosing the best of many figures.

// Interval is a range that holds the true value with the confidence IntervalLevel.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Paired compares two ways to answer the same items, by the items that only one of them gets right.
type Paired struct {
	Items  int `json:"items"`
	Lost   int `json:"lost"`   // right by the first way only
	Gained int `json:"gained"` // right by the second way only
}

// Add counts an item; first and second are whether each way got it right.
func (p *Paired) Add(first, second bool) {
	p.Items++
	switch {
	case first && !second:
		p.Lost++
	case second && !first:
		p.Gained++
	}
}

// Difference returns the second accuracy minus the first.
func (p Paired) Difference() float64 {
	if p.Items == 0 {
		return 0
	}
	return float64(p.Gained-p.Lost) / float64(p.Items)
}

// Interval returns Tango's score interval of the difference; -1 to 1 without items.
func (p Paired) Interval() Interval {
	z := normalQuantile(IntervalLevel)
	return Interval{p.bound(z), p.bound(-z)}
}

// LossAtMost returns a one-sided upper bound, with this confidence, of the accuracy that the second
// way loses. It is below 0 if the second way is surely better.
func (p Paired) LossAtMost(confidence float64) float64 {
	return -p.bound(normalQuantile(2*confidence - 1))
}

// MarshalJSON writes the counts with the difference, its interval and its chance.
func (p Paired) MarshalJSON() ([]byte, error) {
	type counts Paired
	return json.Marshal(struct {
		counts
		Difference float64  `json:"difference"`
		Interval   Interval `json:"interval"`
		Chance     float64  `json:"chance"`
	}{counts(p), p.Difference(), p.Interval(), p.Chance()})
}

// bound returns the difference that lies z standard errors below the counted difference. This
// distance falls as the difference grows.
func (p Paired) bound(z float64) float64 {
	low, high := -1., 1.
	if p.Items == 0 {
		return math.Copysign(1, -z)
	}
	for range 60 { // 60 halvings exceed the precision of a float64
		middle := (low + high) / 2
		if p.score(middle) > z {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// score returns how many standard errors the counted difference lies above the given difference.
// The variance comes from the likeliest shares with the given difference (Tango 1998, equations 5
// to 8).
func (p Paired) score(difference float64) float64 {
	n, lost, gained := float64(p.Items), float64(p.Lost), float64(p.Gained)
	above := gained - lost - n*difference
	b := -gained - lost + (2*n-gained+lost)*difference
	c := -lost * difference * (1 - difference)
	likeliest := (math.Sqrt(max(b*b-8*n*c, 0)) - b) / (4 * n) // share of Lost
	variance := n * (2*likeliest + difference*(1-difference))
	switch {
	case variance > 0:
		return above / math.Sqrt(variance)
	case above == 0:
		return 0
	}
	return math.Copysign(math.Inf(1), above)
}

// Chance returns the probability of a difference at least as large, in either direction, if both
// ways are equally good: the two-sided exact sign test.
func (p Paired) Chance() float64 {
	few, all := min(p.Lost, p.Gained), p.Lost+p.Gained
	if 2*few == all {
		return 1
	}
	return min(1, 2*mathext.RegIncBeta(float64(all-few), float64(few+1), .5))
}

// IntervalLevel is the confidence of two-sided intervals, and the default of bounds.
const IntervalLevel = .95

// Wilson returns the score interval of a share: right of n items; 0 to 1 without items.
func Wilson(right, n int) Interval {
	return MeanInterval(float64(right)/float64(max(n, 1)), n)
}

// MeanInterval returns Wilson's interval of the mean of n values between 0 and 1, as if each were 0 or 1.
// No other values with this mean vary more, so it is never too narrow. Without values it is 0 to 1.
func MeanInterval(p float64, n int) Interval {
	if n == 0 {
		return Interval{0, 1}
	}
	z, items := normalQuantile(IntervalLevel), float64(n)
	middle := p + z*z/(2*items)
	half := z * math.Sqrt(p*(1-p)/items+z*z/(4*items*items))
	low, high := (middle-half)/(1+z*z/items), (middle+half)/(1+z*z/items)
	return Interval{max(0, min(low, p)), min(1, max(high, p))} // rounding would miss 0 and 1
}

// AtLeast returns an exact one-sided lower bound of the true share, with this confidence between 0
// and 1: whatever the true share is, it lies below the bound in at most 1 - confidence of samples.
func AtLeast(right, n int, confidence float64) float64 {
	if right == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(right), float64(n-right+1), 1-confidence)
}

// AtMost returns the upper bound that corresponds to AtLeast.
func AtMost(right, n int, confidence float64) float64 {
	if right == n {
		return 1
	}
	return mathext.InvRegIncBeta(float64(right+1), float64(n-right), confidence)
}

// normalQuantile returns how many standard deviations to either side hold a share of the normal
// distribution.
func normalQuantile(share float64) float64 { return mathext.NormalQuantile((1 + share) / 2) }
