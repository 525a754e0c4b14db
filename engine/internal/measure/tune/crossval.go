package tune

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/racflow/racflow/engine/internal/measure/eval"
)

// This file splits items into folds, and tests whether what was chosen by cross-validation is better
// by more than chance. Items with the same text share a fold. For each fold in turn, a value is
// chosen on all other folds and scored on this fold, so that no item takes part in the choice under
// which it is scored (Stone, "Cross-validatory choice and assessment of statistical predictions",
// Journal of the Royal Statistical Society B 36:111-147, 1974).

// confidence is the confidence of each bound of a Difference by itself. Both bounds hold together
// in nine of ten cases.
const confidence = .95

// Difference is the change of the mean score of items, with bounds that each hold with a confidence
// of 95 %.
type Difference struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Better reports whether the scores are higher by more than chance.
func (d Difference) Better() bool { return d.Low > 0 }

// String returns the difference in percentage points, such as "+1.2 points [0.4, 2.0]".
func (d Difference) String() string {
	points := func(format string, x float64) string {
		if x = math.Round(1000*x) / 10; x == 0 {
			x = 0 // never -0.0
		}
		return fmt.Sprintf(format, x)
	}
	return points("%+.1f", d.Mean) + " points [" + points("%.1f", d.Low) + ", " + points("%.1f", d.High) + "]"
}

// Compare compares two scores of the same items, each between 0 and 1, with one or both from
// cross-validation over these folds. Scores that are all 0 or 1 are compared by Tango's score
// interval (package eval), others by Student's interval of the mean difference. Its degrees of
// freedom count only items that differ: the others say nothing about how much the differences
// scatter.
//
// Choices made on overlapping items err together, so that their differences scatter more than with
// independent items. Compare widens the standard error by the correction of Nadeau and Bengio
// ("Inference for the generalization error", Machine Learning 52:239-281, 2003), 1.5 times for five
// folds. Without it, the best of eight equally good values would be kept in one case of seven
// instead of one in twenty.
func (f Folds) Compare(before, after []float64) Difference {
	return difference(before, after, math.Sqrt(1+float64(f.Count)/float64(f.Count-1)))
}

func difference(before, after []float64, widen float64) Difference {
	paired := eval.Paired{}
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
		swapped := eval.Paired{Items: paired.Items, Lost: paired.Gained, Gained: paired.Lost}
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

// student returns the quantile of Student's t distribution at the constant confidence.
func student(freedom int) float64 {
	nu := float64(freedom)
	x := mathext.InvRegIncBeta(nu/2, .5, 2*(1-confidence))
	return math.Sqrt(nu * (1 - x) / x)
}

// Folds assigns each item to a part of the items.
type Folds struct {
	Count int
	of    []int // by item
}

// SplitFolds splits items with these texts into folds. It fails if there are too few distinct texts
// for the folds, so that callers can check before they pay for answers.
func SplitFolds(texts []string, folds int) (Folds, error) {
	if folds < 2 {
		return Folds{}, fmt.Errorf("%d folds: at least 2 are needed to hold rows out", folds)
	}
	f := Folds{folds, make([]int, len(texts))}
	sizes := make([]int, folds)
	for i, text := range texts {
		f.of[i] = foldOf(text, folds)
		sizes[f.of[i]]++
	}
	if slices.Contains(sizes, 0) || slices.Contains(sizes, len(texts)) {
		return f, fmt.Errorf("%d items do not fill %d folds, where those with the same text share one: give more rows, or fewer folds", len(texts), folds)
	}
	return f, nil
}

func foldOf(text string, folds int) int {
	h := fnv.New64a()
	h.Write([]byte(text)) //nolint:errcheck // a hash never fails
	return int(h.Sum64() % uint64(folds))
}

// Of returns the items outside a fold, and the items in it, in order.
func (f Folds) Of(fold int) (train, test []int) {
	for i, of := range f.of {
		if of == fold {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}

// all returns the positions of all items.
func (f Folds) all() []int {
	all := make([]int, len(f.of))
	for i := range all {
		all[i] = i
	}
	return all
}
