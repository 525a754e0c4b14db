package promise

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// population is a kind of items, the surest first: of the item at u, from 0 to 1, the
// confidence, which falls with u, and the probabilities that it is out of scope and that
// its answer is right if it is not.
type population struct {
	confidence, outside, right func(u float64) float64
}

// cells are the items that a population has, one as likely as the other. What is true of
// it is counted, not estimated.
const cells = 20_000

type cell struct {
	confidence, outside, right float64
	accuracy                   float64 // of this and all surer ones
	missed                     float64 // of all that is out of scope: the share in these
}

func (p population) cells() []cell {
	all := make([]cell, cells)
	right, outside := 0., 0.
	for c := range all {
		u := (float64(c) + .5) / cells
		all[c] = cell{confidence: p.confidence(u), outside: p.outside(u), right: p.right(u)}
		right += (1 - all[c].outside) * all[c].right
		outside += all[c].outside
		all[c].accuracy, all[c].missed = right/float64(c+1), outside
	}
	for c := range all {
		all[c].missed /= max(outside, 1)
	}
	return all
}

// answered is how many cells a threshold answers.
func answered(all []cell, threshold float64) int {
	return sort.Search(cells, func(c int) bool { return all[c].confidence < threshold })
}

// oracle is how many the lowest threshold that keeps the goal answers.
func oracle(all []cell, accuracy float64) int {
	for n := cells; n > 0; n-- {
		if (n == cells || all[n].confidence < all[n-1].confidence) && all[n-1].accuracy >= accuracy {
			return n
		}
	}
	return 0
}

// draw draws rows, the surest first.
func draw(all []cell, r *rand.Rand, rows []Item) {
	at := make([]float64, len(rows))
	sum := 0.
	for i := range at {
		sum += r.ExpFloat64()
		at[i] = sum
	}
	sum += r.ExpFloat64()
	for i, a := range at {
		c := &all[int(a/sum*cells)] // a/sum are sorted uniform numbers
		outside := r.Float64() < c.outside
		rows[i] = Item{Confidence: c.confidence, Answered: true, Outside: outside, Right: r.Float64() < c.right && !outside}
	}
}

func none(float64) float64 { return 0 }

// levels is a confidence with few values, each with its share of the items and the
// probability that an answer with it is right.
func levels(all ...[3]float64) population {
	at := func(u float64) [3]float64 {
		for _, l := range all[:len(all)-1] {
			if u -= l[1]; u < 0 {
				return l
			}
		}
		return all[len(all)-1]
	}
	return population{func(u float64) float64 { return at(u)[0] }, none, func(u float64) float64 { return at(u)[2] }}
}

func populations() map[string]population {
	right := func(u float64) float64 { return .998 - .6*math.Pow(u, 4) }
	return map[string]population{
		"calibrated":    {right, none, right},
		"overconfident": {func(u float64) float64 { return 1 - math.Pow(1-right(u), 3) }, none, right},
		"errors in the tail": {func(u float64) float64 { return 1 - u }, none, func(u float64) float64 {
			return .996 - .8*math.Pow(u, 10)
		}},
		"errors everywhere": {func(u float64) float64 { return 1 - u }, none, func(u float64) float64 {
			return .991 - .8*math.Pow(u, 12)
		}},
		"the surest are worse": {func(u float64) float64 { return 1 - u }, none, func(u float64) float64 {
			if u < .05 {
				return .9
			}
			return .995 - .7*math.Pow(u, 6)
		}},
		"out of scope": {func(u float64) float64 { return 1 - .9*u }, func(u float64) float64 {
			return min(1, .002+.9*math.Pow(u, 5))
		}, func(u float64) float64 { return .996 - .3*math.Pow(u, 4) }},
		"3 values": levels([3]float64{1, .6, .993}, [3]float64{.67, .25, .93}, [3]float64{.33, .15, .5}),
		"5 values": levels([3]float64{1, .3, .999}, [3]float64{.8, .3, .99}, [3]float64{.6, .2, .97}, [3]float64{.4, .1, .85}, [3]float64{.2, .1, .5}),
		"6 values": levels([3]float64{1, .45, .995}, [3]float64{.83, .2, .985}, [3]float64{.67, .15, .95}, [3]float64{.5, .1, .85}, [3]float64{.33, .06, .6}, [3]float64{.17, .04, .4}),
	}
}

// TestDraws draws rows from populations whose accuracy is known. At most one promise in
// twenty is broken, and promises cover most of what could be answered if that accuracy
// were known to everybody.
func TestDraws(t *testing.T) {
	draws := 1000
	if testing.Short() {
		draws = 100
	}
	atMost := .05 + 2*math.Sqrt(.05*.95/float64(draws))
	share, settings := 0., 0.
	for name, p := range populations() {
		all := p.cells()
		for _, s := range []struct {
			accuracy float64
			rows     int
		}{{.95, 600}, {.95, 2000}, {.98, 2000}} {
			g := Goal{s.accuracy, .95}
			r := rand.New(rand.NewPCG(uint64(len(name)), uint64(s.rows)))
			rows, start := make([]Item, s.rows), g.start(s.rows)
			broken, brokenOutside, sum := 0, 0, 0
			for range draws {
				draw(all, r, rows)
				promise, err := g.find(rows, start)
				if err != nil {
					continue
				}
				n := answered(all, promise.Threshold(false))
				sum += n
				if all[n-1].accuracy < g.Accuracy {
					broken++
				}
				if 1-all[n-1].missed < promise.Caught {
					brokenOutside++
				}
			}
			of := oracle(all, g.Accuracy)
			got := float64(sum) / float64(draws) / float64(of)
			t.Logf("%-20s %v, %4d rows: broken %2d, out of scope %2d; %.2f of the oracle's %.2f", name, g, s.rows, broken, brokenOutside, got, float64(of)/cells)
			if max(broken, brokenOutside) > int(atMost*float64(draws)) {
				t.Errorf("%s: %v on %d rows is broken in %d of %d draws, out of scope in %d", name, g, s.rows, broken, draws, brokenOutside)
			}
			if s.rows == 2000 {
				share, settings = share+got, settings+1
			}
		}
	}
	t.Logf("%.3f of the oracle's answers", share/settings)
	if share/settings < .8 {
		t.Errorf("promises answer %.3f of what could be answered", share/settings)
	}
}
