package tune

import (
	"context"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/reelect"
)

// Point is what a threshold is worth on rows that it was not found on.
type Point struct {
	Threshold float64 `json:"threshold"` // on average over the folds
	Sent      float64 `json:"sent"`      // share of the items that were sent
	Accuracy  float64 `json:"accuracy"`
	Cost      float64 `json:"cost"` // of a thousand items

	items, lost, gained int // lost are right with everything sent, but not so; gained the other way round
}

// sum is a point of one fold that can be added up.
type sum struct {
	items, sent, right int
	lost, gained       int // against everything sent
	cost, threshold    float64
}

func (s sum) add(o sum) sum {
	return sum{
		s.items + o.items, s.sent + o.sent, s.right + o.right, s.lost + o.lost, s.gained + o.gained,
		s.cost + o.cost, s.threshold + o.threshold,
	}
}

func (s sum) point(folds int) Point {
	n := float64(max(s.items, 1))
	return Point{
		Threshold: s.threshold / float64(max(folds, 1)), Sent: float64(s.sent) / n, Accuracy: float64(s.right) / n,
		Cost: 1000 * s.cost / n, items: s.items, lost: s.lost, gained: s.gained,
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
	return points
}

// points counts for each share what the threshold that sends it of some items
// does to others.
func (w *work) points(ctx context.Context, election *reelect.Election, train, test []int, shares []float64) ([]sum, error) {
	sums := make([]sum, len(shares))
	var reference []bool
	for k := len(shares) - 1; k >= 0; k-- { // from everything sent, with which the others are compared
		s, right, err := w.measure(ctx, election, test, w.threshold(train, shares[k]))
		if err != nil {
			return nil, err
		}
		if reference == nil {
			reference = right
		}
		for i := range right {
			switch {
			case reference[i] && !right[i]:
				s.lost++
			case right[i] && !reference[i]:
				s.gained++
			}
		}
		sums[k] = s
	}
	return sums, nil
}

// measure counts what a threshold does to items, and says which it leaves
// right.
func (w *work) measure(ctx context.Context, election *reelect.Election, items []int, at float64) (sum, []bool, error) {
	s, right := sum{items: len(items), threshold: at}, make([]bool, len(items))
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
		if right[i] = w.counter.Right(results[i]); right[i] {
			s.right++
		}
	}
	return s, right, err
}

func (w *work) pick(items []int) []outcome.Result {
	all := make([]outcome.Result, len(items))
	for i, at := range items {
		all[i] = w.Results[at]
	}
	return all
}
