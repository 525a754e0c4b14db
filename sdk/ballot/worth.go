package ballot

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

// Unmeasured is the accuracy that a voter is taken to have where nobody has
// measured it: half way between chance and certainty.
func Unmeasured(labels int) float64 { return (1/float64(max(2, labels)) + 1) / 2 }

// surest is the greatest accuracy that counts. A voter that made no mistake on
// a small file is not infallible: at this one it outvotes others as often as
// its 999 of 1,000 right answers tell.
const surest = 0.999

// Worth is the weight of a vote by a voter that is right on a share p of the
// items, among so many labels (at least 2):
//
//	log((labels - 1) * p / (1 - p))
//
// Votes weighted so elect the likeliest label if voters err independently of
// each other, on each wrong label as often as on any other, and labels are
// equally frequent. For two labels it is the optimal rule of Nitzan and
// Paroush, "Optimal decision rules in uncertain dichotomous choice
// situations", International Economic Review 23(2), 1982; for more it is that
// of Kuncheva and Rodríguez, "A weighted voting framework for classifiers
// ensembles", Knowledge and Information Systems 38, 2014.
//
// Accuracies above 0.999 count as that. A voter that is no better than chance
// has no weight: what it says is not turned into its opposite.
func Worth(p float64, labels int) float64 {
	p = min(p, surest)
	return max(0, math.Log(float64(max(2, labels)-1)*p/(1-p)))
}

// ParseAccuracies reads the shares of items that voters are right on from the
// value of a map(string) argument. It returns an sdk.ArgumentError for each
// that is not between 0 and 1.
func ParseAccuracies(argument string, given map[string]string) (map[string]float64, error) {
	accuracies := map[string]float64{}
	var faults []error
	for _, voter := range slices.Sorted(maps.Keys(given)) {
		p, err := strconv.ParseFloat(given[voter], 64)
		if err != nil || !(p >= 0 && p <= 1) {
			faults = append(faults, &sdk.ArgumentError{Argument: argument,
				Err: fmt.Errorf("the accuracy of %q is %q; write the share of items that it is right on, from 0 to 1", voter, given[voter])})
			continue
		}
		accuracies[voter] = p
	}
	return accuracies, errors.Join(faults...)
}
