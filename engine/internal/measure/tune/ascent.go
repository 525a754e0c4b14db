package tune

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// This file searches for the weights that make the most items right, by coordinate ascent on a
// grid: one weight at a time takes its best value while the others stay, until a round over all
// weights gains nothing.
//
// All values of a weight are tried together, on more and more of the items; a value that falls
// behind the present one by more than chance is dropped (Maron and Moore, "Hoeffding races:
// accelerating model selection search for classification and function approximation", NIPS 6:59-66,
// 1993, with a normal bound of the paired difference instead of Hoeffding's). Scores are kept, so
// that searches on overlapping items share them.
//
// A count of evaluations bounds the work, never a clock: the same items give the same weights on
// any machine. The caller defines an evaluation.

// WeightGrid has the values of a weight; 0 excludes the voter.
var WeightGrid = []float64{0, 1. / 8, 1. / 4, 1. / 2, 1, 2, 4, 8}

const (
	one    = 4     // index of 1 in WeightGrid
	gain   = 0.005 // share of the items that a step must gain at least; less is chance
	rounds = 6     // over all weights
	behind = 2.    // standard errors after which a value that falls short is dropped
	first  = 64    // items on which all values are tried first; then twice as many, and so on
	// MaxWeightItems limits the items of a search, drawn at random. More items would tell apart only
	// values that differ by less than a step must gain.
	MaxWeightItems = 3000
)

// WeightSearch has the state that searches over the same items share. It belongs to one goroutine.
type WeightSearch struct {
	Weights int // number of weights
	Items   int
	// Score scores some of the items under weights, each between 0 and Most. It returns one score
	// per item.
	Score func(ctx context.Context, weights []float64, items []int) ([]int8, error)
	Most  int
	// Budget limits the items scored by all searches together.
	Budget   int
	Progress func(done, total int) // of the budget; nil: no reports

	spent int
	known map[string][]int8 // scores by weights, then by item; unknown: not scored
}

const unknown = -1

// Spent returns the number of items scored.
func (s *WeightSearch) Spent() int { return s.spent }

// Exhausted reports whether the budget ended a search early.
func (s *WeightSearch) Exhausted() bool { return s.spent >= s.Budget }

// Best returns the best weights found for some of the items, given by position.
func (s *WeightSearch) Best(ctx context.Context, items []int) ([]float64, error) {
	items = s.drawn(items)
	at := slices.Repeat([]int{one}, s.Weights)
	step := max(1, int(gain*float64(len(items))))
	for improved, round := true, 0; improved && round < rounds; round++ {
		improved = false
		for c := range at {
			if s.Exhausted() {
				return weightsOf(at), nil
			}
			best, err := s.race(ctx, at, c, items, step)
			if err != nil {
				return nil, err
			}
			improved = improved || best != at[c]
			at[c] = best
		}
	}
	return weightsOf(at), nil
}

// drawn returns at most MaxWeightItems of some items, in an order that all searches share.
func (s *WeightSearch) drawn(items []int) []int {
	order := rand.New(rand.NewPCG(1, 2)).Perm(s.Items)
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b int) int { return order[a] - order[b] })
	return items[:min(len(items), MaxWeightItems)]
}

// race returns the best value of a weight if it gains a step, otherwise the present one.
func (s *WeightSearch) race(ctx context.Context, at []int, c int, items []int, step int) (best int, err error) {
	now, err := s.scores(ctx, at, items)
	if err != nil {
		return 0, err
	}
	type rival struct {
		value, ahead int
		squares      float64
	}
	var rivals []rival
	for v := range WeightGrid {
		if v != at[c] {
			rivals = append(rivals, rival{value: v})
		}
	}
	// Among equally good values, prefer the one nearest to 1.
	slices.SortStableFunc(rivals, func(a, b rival) int { return abs(a.value-one) - abs(b.value-one) })
	for from, to := 0, 0; to < len(items) && len(rivals) > 0; from = to {
		to = min(max(first, 2*from), len(items))
		kept := rivals[:0]
		for _, r := range rivals {
			point := slices.Clone(at)
			point[c] = r.value
			found, err := s.scores(ctx, point, items[from:to])
			if err != nil {
				return 0, err
			}
			for i, score := range found {
				d := int(score) - int(now[from+i])
				r.ahead, r.squares = r.ahead+d, r.squares+float64(d*d)
			}
			if !hopeless(r.ahead, r.squares, to, len(items), s.Most, step) {
				kept = append(kept, r)
			}
		}
		rivals = kept
	}
	best, most := at[c], step
	for _, r := range rivals {
		if r.ahead > most || r.ahead == step && best == at[c] {
			best, most = r.value, r.ahead
		}
	}
	return best, nil
}

// hopeless reports whether a value, so far ahead on some of the items, will not be a step ahead on
// all of them.
func hopeless(ahead int, squares float64, seen, all, most, step int) bool {
	if ahead+(all-seen)*most < step {
		return true
	}
	n := float64(seen)
	mean := float64(ahead) / n
	bound := mean + behind*math.Sqrt(max(squares/n-mean*mean, 0)/n)
	return bound < float64(step)/float64(all)
}

// scores returns the scores of items, scoring those not yet known.
func (s *WeightSearch) scores(ctx context.Context, at []int, items []int) ([]int8, error) {
	key := string(bytesOf(at))
	if s.known == nil {
		s.known = map[string][]int8{}
	}
	known := s.known[key]
	if known == nil {
		known = slices.Repeat([]int8{unknown}, s.Items)
		s.known[key] = known
	}
	var missing []int
	for _, i := range items {
		if known[i] == unknown {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 {
		found, err := s.Score(ctx, weightsOf(at), missing)
		if err != nil {
			return nil, err
		}
		if len(found) != len(missing) {
			return nil, fmt.Errorf("%d scores of %d items", len(found), len(missing))
		}
		for n, i := range missing {
			known[i] = found[n]
		}
		if s.spent += len(missing); s.Progress != nil {
			s.Progress(min(s.spent, s.Budget), s.Budget)
		}
	}
	all := make([]int8, len(items))
	for n, i := range items {
		all[n] = known[i]
	}
	return all, nil
}

func weightsOf(at []int) []float64 {
	all := make([]float64, len(at))
	for i, v := range at {
		all[i] = WeightGrid[v]
	}
	return all
}

func bytesOf(at []int) []byte {
	all := make([]byte, len(at))
	for i, v := range at {
		all[i] = byte(v)
	}
	return all
}

func abs(x int) int { return max(x, -x) }
