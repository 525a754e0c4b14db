package ballot

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
