package interval

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Level is the confidence of two-sided intervals, and the usual one of bounds.
const Level = .95

// Interval is a range that holds the true value with the confidence Level.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Wilson returns the score interval of a share: right of n items. Without items
// nothing is known: 0 to 1.
func Wilson(right, n int) Interval {
	return Mean(float64(right)/float64(max(n, 1)), n)
}

// Mean returns Wilson's interval of the mean of n values between 0 and 1, as if each were 0 or 1:
// no other values with this mean vary more, so it is at least as wide as it has to be. Without
// values nothing is known: 0 to 1.
func Mean(p float64, n int) Interval {
	if n == 0 {
		return Interval{0, 1}
	}
	z, items := quantile(Level), float64(n)
	middle := p + z*z/(2*items)
	half := z * math.Sqrt(p*(1-p)/items+z*z/(4*items*items))
	low, high := (middle-half)/(1+z*z/items), (middle+half)/(1+z*z/items)
	return Interval{max(0, min(low, p)), min(1, max(high, p))} // rounding would miss 0 and 1
}

// AtLeast returns the share that the true one is not below, with this confidence
// between 0 and 1, one-sided and exact: in no more than 1 - confidence of samples is
// the true share below it, whatever it is.
func AtLeast(right, n int, confidence float64) float64 {
	if right == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(right), float64(n-right+1), 1-confidence)
}

// AtMost returns the share that the true one is not above, as AtLeast does for below.
func AtMost(right, n int, confidence float64) float64 {
	if right == n {
		return 1
	}
	return mathext.InvRegIncBeta(float64(right+1), float64(n-right), confidence)
}

// quantile returns how many standard deviations either way hold a share of the normal
// distribution.
func quantile(share float64) float64 { return mathext.NormalQuantile((1 + share) / 2) }
