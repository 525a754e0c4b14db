package review

import (
	"context"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// This file picks the texts that teach most when a person labels them: texts that represent many
// doubtful texts, which no labelled text represents yet.
//
// A text represents another text to the degree of their squared cosine. A text is covered to the degree of
// the labelled text that represents it best. Each pick adds the most coverage, where every text is
// weighted by the square of its doubt (facility location: Nemhauser, Wolsey and Fisher, "An analysis of
// approximations for maximizing submodular set functions", 1978). So an outlier has to wait even if it is
// doubtful, two picks do not teach the same, and texts of a label without examples come early.
//
// The coverage that a text would add never grows while others are picked. So it is recomputed only for
// the text that would come next (Minoux, "Accelerated greedy algorithms for maximizing submodular set
// functions", 1978).

// lesson is a text that may be picked.
type lesson struct {
	vector  []float32 // of length 1; empty: the text has none
	doubt   float64   // from 0 to 1
	covered float32   // how well a labelled text represents it
	near    []int     // positions of texts that are nearly the same
	closed  bool      // it has a label, or is nearly the same as a labelled text
}

// picked is the position of a text, and how many other texts it covers better than earlier picks.
type picked struct{ at, covers int }

// leastWeight lets texts without doubt count a little: the answer may be wrong, and if doubt comes
// only from the agreement of voters, most texts have no doubt.
const leastWeight = .01

// picking is the state of a choice under way.
type picking struct {
	all    []lesson
	stands [][]float32 // how well one text represents another, from 0 to 1
}

// pick returns at most n open texts, the texts that teach most first. The last texts, of the number
// labelled, count as already picked.
func pick(ctx context.Context, all []lesson, labelled, n int) ([]picked, error) {
	p, err := compare(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := len(all) - labelled; i < len(all); i++ {
		p.cover(i)
	}
	adds := make([]float64, len(all)) // upper bounds
	for i := range all {
		adds[i] = p.adds(i)
	}
	var picks []picked
	seen := make([]int, len(all)) // by text: the number of picks when adds was computed
	for len(picks) < n {
		best := -1
		for i := range all {
			if !all[i].closed && adds[i] > 0 && (best < 0 || adds[i] > adds[best]) {
				best = i
			}
		}
		switch {
		case best < 0:
			return picks, nil
		case seen[best] < len(picks):
			adds[best], seen[best] = p.adds(best), len(picks)
		default:
			picks = append(picks, picked{best, p.cover(best)})
		}
	}
	return picks, nil
}

// compare compares all texts with each other.
func compare(ctx context.Context, all []lesson) (*picking, error) {
	p := &picking{all, make([][]float32, len(all))}
	for i := range all {
		p.stands[i] = make([]float32, len(all))
	}
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		work.Go(func() error {
			for j := range i + 1 {
				by := standing(dot(all[i].vector, all[j].vector))
				p.stands[i][j], p.stands[j][i] = by, by
			}
			return ctx.Err()
		})
	}
	return p, work.Wait()
}

// adds returns how much better all texts are covered once a text is labelled.
func (p *picking) adds(at int) (sum float64) {
	for i, by := range p.stands[at] {
		if of := &p.all[i]; by > of.covered {
			sum += float64(by-of.covered) * (of.doubt*of.doubt + leastWeight)
		}
	}
	return sum
}

// cover counts a text as labelled, and returns how many other open texts it covers better.
func (p *picking) cover(at int) (others int) {
	p.all[at].closed = true
	for _, i := range p.all[at].near {
		p.all[i].closed = true
	}
	for i, by := range p.stands[at] {
		if of := &p.all[i]; by > of.covered {
			of.covered = by
			if !of.closed {
				others++
			}
		}
	}
	return others
}

// standing returns how well one text represents another, by their cosine.
func standing(cosine float32) float32 { return max(cosine, 0) * cosine }

// dot returns the dot product of two vectors, or 0 if one is missing. It sums in four independent
// lanes for speed, because it takes most of the time.
func dot(a, b []float32) float32 {
	if len(a) != len(b) {
		return 0
	}
	var s0, s1, s2, s3 float32
	for ; len(a) >= 4 && len(b) >= 4; a, b = a[4:], b[4:] {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// unit returns a vector scaled to length 1; nil: that is impossible.
func unit(v []float32) []float32 {
	length := math.Sqrt(float64(dot(v, v)))
	if length == 0 {
		return nil
	}
	v = slices.Clone(v)
	for i := range v {
		v[i] /= float32(length)
	}
	return v
}
