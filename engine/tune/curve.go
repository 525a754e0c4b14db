package tune

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/reelect"
)

// Point is what a threshold is worth on rows that it was not found on.
type Point struct {
	Threshold float64 `json:"threshold"` // on average over the folds
	Sent      float64 `json:"sent"`      // share of the items that were sent
	Accuracy  float64 `json:"accuracy"`
	Cost      float64 `json:"cost"` // of a thousand items

	items        int
	lost, gained int       // lost are right at the best point of the curve, but not so; gained the other way round
	right        []float64 // by item: 1 or 0
}

// sum is a point of one fold that can be added up.
type sum struct {
	items, sent     int
	right           []float64 // by item: 1 or 0
	cost, threshold float64
}

func (s sum) add(o sum) sum {
	return sum{s.items + o.items, s.sent + o.sent, slices.Concat(s.right, o.right), s.cost + o.cost, s.threshold + o.threshold}
}

func (s sum) point(folds int) Point {
	n, right := float64(max(s.items, 1)), 0.0
	for _, r := range s.right {
		right += r
	}
	return Point{
		Threshold: s.threshold / float64(max(folds, 1)), Sent: float64(s.sent) / n, Accuracy: right / n,
		Cost: 1000 * s.cost / n, items: s.items, right: s.right,
	}
}

// curve sums up over all folds but one; -1: over all.
func curve(sums [][]sum, without int) []Point {
	points := make([]Point, len(sums[0]))
	for k := range points {
		var s sum
		folds := 0
		for f := range sums {
			if f != without {
				s = s.add(sums[f][k])
				folds++
			}
		}
		points[k] = s.point(folds)
	}
	reference := points[best(points, func(Point) bool { return true })].right
	for k := range points {
		for i, right := range points[k].right {
			switch {
			case reference[i] > right:
				points[k].lost++
			case right > reference[i]:
				points[k].gained++
			}
		}
	}
	return points
}

// points counts for each share what the threshold that sends it of some items
// does to others.
func (w *work) points(ctx context.Context, election *reelect.Election, train, test []int, shares []float64) ([]sum, error) {
	sums := make([]sum, len(shares))
	for k, share := range shares {
		var err error
		if sums[k], err = w.measure(ctx, election, test, w.threshold(train, share)); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// measure counts what a threshold does to items.
func (w *work) measure(ctx context.Context, election *reelect.Election, items []int, at float64) (sum, error) {
	s := sum{items: len(items), threshold: at, right: make([]float64, len(items))}
	sent := make([]bool, len(items))
	results, err := election.Elect(ctx, w.pick(items), func(a reelect.Ask) bool {
		if !w.asks(a.Stage.Name, a.Margin, a.Agreement, at) {
			return false
		}
		if d, ok := w.doubts[a.Stage.Name]; ok && d.variable == w.Variable {
			sent[a.Item] = true
		}
		if w.Cost != nil {
			s.cost += w.Cost(a.Stage.Name, a.Usage)
		}
		return true
	})
	for i := range results {
		if sent[i] {
			s.sent++
		}
		if w.counter.Right(results[i]) {
			s.right[i] = 1
		}
	}
	return s, err
}

func (w *work) pick(items []int) []outcome.Result {
	all := make([]outcome.Result, len(items))
	for i, at := range items {
		all[i] = w.Results[at]
	}
	return all
}
