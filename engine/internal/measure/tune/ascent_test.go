package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// panel is a problem: voters that name one of some labels, and the labels that are right.
type panel struct {
	votes  [][]int // by voter
	truth  []int
	labels int
}

func newPanel(seed uint64, items, labels int, accuracy ...float64) panel {
	random := rand.New(rand.NewPCG(seed, 2))
	p := panel{votes: make([][]int, len(accuracy)), labels: labels}
	for range items {
		label := random.IntN(labels)
		p.truth = append(p.truth, label)
		wrong := (label + 1 + random.IntN(labels-1)) % labels // the weak ones agree in their errors
		for v, a := range accuracy {
			vote := wrong
			if random.Float64() < a {
				vote = label
			} else if a > .6 {
				vote = (label + 1 + random.IntN(labels-1)) % labels
			}
			p.votes[v] = append(p.votes[v], vote)
		}
	}
	return p
}

func (p panel) search(budget int) *WeightSearch {
	return &WeightSearch{Weights: len(p.votes), Items: len(p.truth), Most: 1, Budget: budget, Score: func(_ context.Context, weights []float64, items []int) ([]int8, error) {
		all := make([]int8, len(items))
		for n, i := range items {
			sums := make([]float64, p.labels)
			for v := range p.votes {
				sums[p.votes[v][i]] += weights[v]
			}
			best := 0
			for l, s := range sums {
				if s > sums[best] {
					best = l
				}
			}
			if best == p.truth[i] {
				all[n] = 1
			}
		}
		return all, nil
	}}
}

func (p panel) accuracy(t *testing.T, weights []float64) float64 {
	all := make([]int, len(p.truth))
	for i := range all {
		all[i] = i
	}
	found, err := p.search(0).Score(t.Context(), weights, all)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, right := range found {
		sum += int(right)
	}
	return float64(sum) / float64(len(all))
}

func (p panel) best(t *testing.T, s *WeightSearch, items int) []float64 {
	t.Helper()
	all := make([]int, items)
	for i := range all {
		all[i] = i
	}
	weights, err := s.Best(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	return weights
}

// TestBest: the many weak voters, which outvote the two good ones, are overruled, on
// items that the search has not seen, too.
func TestBest(t *testing.T) {
	accuracy := []float64{.5, .5, .9, .4, .5, .85, .3, .45, .5, .4}
	p, other := newPanel(1, 600, 20, accuracy...), newPanel(2, 2000, 20, accuracy...)
	s := p.search(6_000_000)
	weights := p.best(t, s, 600)
	equal := other.accuracy(t, slices.Repeat([]float64{1}, len(accuracy)))
	if got := other.accuracy(t, weights); got < .88 || equal > .75 {
		t.Errorf("%.3f with %v, %.3f with equal weights", got, weights, equal)
	}
	// Less than three whole rounds over ten weights with seven other values each.
	if most := 3 * 10 * 7 * 600; s.Spent() > most || s.Exhausted() {
		t.Errorf("%d elections, more than %d", s.Spent(), most)
	}
	if again := p.best(t, p.search(6_000_000), 600); !slices.Equal(weights, again) {
		t.Errorf("%v, then %v", weights, again)
	}
	// What one search knows, another need not ask for.
	before := s.Spent()
	if again := p.best(t, s, 600); !slices.Equal(weights, again) || s.Spent() != before {
		t.Errorf("%v, then %v; %d elections, then %d", weights, again, before, s.Spent())
	}
}

// TestBounded: the work does not grow with the items, and ends where the budget does.
func TestBounded(t *testing.T) {
	p := newPanel(3, 20_000, 20, .5, .5, .9, .4, .5, .85)
	s := p.search(1_000_000_000)
	p.best(t, s, 20_000)
	if most := rounds * 6 * len(WeightGrid) * MaxWeightItems; s.Spent() > most {
		t.Errorf("%d elections, more than %d", s.Spent(), most)
	}
	cut := p.search(30_000)
	var told int
	cut.Progress = func(done, _ int) { told = done }
	p.best(t, cut, 20_000)
	// One weight more may be tried where the budget ends.
	if most := 30_000 + len(WeightGrid)*MaxWeightItems; !cut.Exhausted() || cut.Spent() > most || told != 30_000 {
		t.Errorf("%d elections, more than %d; told of %d", cut.Spent(), most, told)
	}
}

// TestHopeless: a value is dropped where it cannot, or hardly, become a step ahead.
func TestHopeless(t *testing.T) {
	tests := []struct {
		ahead      int
		squares    float64
		seen, most int
		want       bool
	}{
		{ahead: 0, squares: 0, seen: 64, most: 1, want: true}, // it changes nothing
		{ahead: 1, squares: 5, seen: 64, most: 1},
		{ahead: -10, squares: 14, seen: 64, most: 1, want: true},
		{ahead: -590, squares: 590, seen: 595, most: 1, want: true},
		{ahead: 2, squares: 10, seen: 600, most: 1, want: true},
		{ahead: 3, squares: 11, seen: 600, most: 1},
	}
	for _, test := range tests {
		if got := hopeless(test.ahead, test.squares, test.seen, 600, test.most, 3); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if math.Abs(WeightGrid[one]-1) > 0 {
		t.Errorf("a search begins with %v for all", WeightGrid[one])
	}
}
