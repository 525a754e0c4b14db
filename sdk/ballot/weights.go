package ballot

// Weights are the weights of voters, by the names of their blocks. A voter that is not
// in it has weight 1; one with weight 0 does not vote.
type Weights map[string]float64

// Of returns the weight of a voter.
func (w Weights) Of(voter string) float64 {
	if weight, ok := w[voter]; ok {
		return weight
	}
	return 1
}
