package crossval

// Choice is the value that was chosen on all items, and what choosing was worth on items
// that took no part in it.
type Choice struct {
	Best int // of all items; where the gain is not better than chance, the first one counts
	// Means are the mean scores of the values over all items.
	Means []float64
	// Chosen has, for each item, the score of the value that was chosen without its fold.
	Chosen []float64
	Gain   Difference // of Chosen over the first value's scores
}

// Choose chooses among values by their scores of each item, all between 0 and 1. The first
// value is the one that is there already; of equal ones the first is chosen.
func (f Folds) Choose(scores [][]float64) Choice {
	all := f.All()
	c := Choice{Chosen: make([]float64, len(all))}
	for fold := range f.Count {
		train, test := f.Of(fold)
		best := highest(scores, train)
		for _, i := range test {
			c.Chosen[i] = scores[best][i]
		}
	}
	for _, of := range scores {
		c.Means = append(c.Means, mean(of, all))
	}
	c.Best, c.Gain = highest(scores, all), f.Compare(scores[0], c.Chosen)
	return c
}

func highest(scores [][]float64, items []int) int {
	best := 0
	for v := range scores {
		if mean(scores[v], items) > mean(scores[best], items) {
			best = v
		}
	}
	return best
}

func mean(scores []float64, items []int) float64 {
	sum := 0.0
	for _, i := range items {
		sum += scores[i]
	}
	return sum / float64(len(items))
}
