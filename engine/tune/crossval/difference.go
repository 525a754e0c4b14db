package crossval

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/racflow/racflow/engine/interval"
)

// confidence is that of each bound of a Difference by itself. Both together hold the
// truth in nine of ten cases.
const confidence = .95

// Difference is by how much the mean score of items is above what it was, with bounds
// that hold with a confidence of 95 % each.
type Difference struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Better reports whether the scores are higher by more than chance.
func (d Difference) Better() bool { return d.Low > 0 }

// String is the difference in points of a hundred, such as "+1.2 points [0.4, 2.0]".
func (d Difference) String() string {
	points := func(format string, x float64) string {
		if x = math.Round(1000*x) / 10; x == 0 {
			x = 0 // never -0.0
		}
		return fmt.Sprintf(format, x)
	}
	return points("%+.1f", d.Mean) + " points [" + points("%.1f", d.Low) + ", " + points("%.1f", d.High) + "]"
}

// Compare compares two scores of the same items, each between 0 and 1, of which one or
// both come from cross-validation over these folds. Scores that are all 0 or 1 are compared
// by Tango's score interval (package interval), others by Student's interval of the mean
// difference, with the degrees of freedom of the items that differ at all: the others say
// nothing about how much the differences scatter.
//
// Choices that are made on overlapping items err together, so that a difference scatters
// more than that of independent items: the standard error is widened by the correction of
// Nadeau and Bengio ("Inference for the generalization error", Machine Learning
// 52:239-281, 2003), 1.5 times for five folds. Without it the best of eight values that
// are equally good would be kept in one case of seven, in place of one in twenty.
func (f Folds) Compare(before, after []float64) Difference {
	widen := math.Sqrt(1 + float64(f.Count)/float64(f.Count-1))
	paired := interval.Paired{}
	var sum, squares float64
	counted, differ := true, 0
	for i := range before {
		d := after[i] - before[i]
		sum, squares = sum+d, squares+d*d
		if d != 0 {
			differ++
		}
		counted = counted && whole(before[i]) && whole(after[i])
		paired.Add(before[i] == 1, after[i] == 1)
	}
	if counted {
		widened := .5 * math.Erfc(-widen*mathext.NormalQuantile(confidence)/math.Sqrt2)
		swapped := interval.Paired{Items: paired.Items, Lost: paired.Gained, Gained: paired.Lost}
		return Difference{paired.Difference(), -paired.LossAtMost(widened), swapped.LossAtMost(widened)}
	}
	n := float64(len(before))
	mean := sum / n
	if differ < 2 {
		return Difference{mean, -1, 1}
	}
	half := widen * student(differ-1) * math.Sqrt(max(squares-n*mean*mean, 0)/(n-1)/n)
	return Difference{mean, max(mean-half, -1), min(mean+half, 1)}
}

func whole(x float64) bool { return x == 0 || x == 1 }

// student is the quantile of Student's distribution below which it lies with that
// confidence.
func student(freedom int) float64 {
	nu := float64(freedom)
	x := mathext.InvRegIncBeta(nu/2, .5, 2*(1-confidence))
	return math.Sqrt(nu * (1 - x) / x)
}
