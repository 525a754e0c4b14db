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

// Weights says how much the voters count, by the names of their blocks. A
// voter that is not in it counts 1; one with weight 0 does not vote.
type Weights map[string]float64

// Of returns the weight of a voter.
func (w Weights) Of(voter string) float64 {
	if weight, ok := w[voter]; ok {
		return weight
	}
	return 1
}

// ParseWeights reads weights from the value of a map(string) argument. It
// returns an sdk.ArgumentError for each that is not a number of at least 0.
func ParseWeights(argument string, given map[string]string) (Weights, error) {
	weights := Weights{}
	var faults []error
	for _, voter := range slices.Sorted(maps.Keys(given)) {
		weight, err := strconv.ParseFloat(given[voter], 64)
		if err != nil || !(weight >= 0) || math.IsInf(weight, 0) {
			faults = append(faults, &sdk.ArgumentError{Argument: argument,
				Err: fmt.Errorf("the weight of %q is %q; write a number of at least 0", voter, given[voter])})
			continue
		}
		weights[voter] = weight
	}
	return weights, errors.Join(faults...)
}
