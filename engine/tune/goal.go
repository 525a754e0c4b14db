package tune

import (
	"fmt"

	"github.com/racflow/racflow/engine/interval"
)

// Goal is what a threshold is chosen for. The zero Goal sends as little as
// loses at most half a point of accuracy against the best point of the curve: to send
// everything may be worse than to send a share, or nothing.
type Goal struct {
	Accuracy *float64 // at least this, with as little sent as that takes
	Share    *float64 // the best accuracy with at most this share of the items sent
	Cost     *float64 // the best accuracy at no more than this for a thousand items
}

// slack is the accuracy that the zero goal gives away.
const slack = 0.005

// near reports whether a point is as good as the best one but for the
// slack: held-out items show it, and chance would hide a greater loss in one
// case of twenty at most. Few items cannot show that; of those nothing may be
// lost at all.
func (p Point) near() bool {
	compared := interval.Paired{Items: p.items, Lost: p.lost, Gained: p.gained}
	return p.lost <= p.gained || compared.LossAtMost(interval.Level) <= slack
}

// choose returns the point of a curve, by rising share, that serves the goal.
func (g Goal) choose(curve []Point) (int, error) {
	switch {
	case g.Accuracy != nil:
		for k, p := range curve {
			if p.Accuracy >= *g.Accuracy {
				return k, nil
			}
		}
		top := best(curve, func(Point) bool { return true })
		return 0, fmt.Errorf("no threshold reaches an accuracy of %.4f: the best is %.4f, with %.1f %% of the items sent",
			*g.Accuracy, curve[top].Accuracy, 100*curve[top].Sent)
	case g.Share != nil:
		if k := best(curve, func(p Point) bool { return p.Sent <= *g.Share }); k >= 0 {
			return k, nil
		}
		return 0, fmt.Errorf("no threshold sends as little as %.1f %% of the items", 100**g.Share)
	case g.Cost != nil:
		if k := best(curve, func(p Point) bool { return p.Cost <= *g.Cost }); k >= 0 {
			return k, nil
		}
		return 0, fmt.Errorf("no threshold costs as little as %g for a thousand items: the least is %.4f", *g.Cost, curve[0].Cost)
	}
	// From the best one down: a point that is near enough by luck, with worse ones
	// after it, is skipped.
	k := best(curve, func(Point) bool { return true })
	for k > 0 && curve[k-1].near() {
		k--
	}
	return k, nil
}

// best returns the most accurate point that is allowed, the cheapest of equal
// ones; -1: none is.
func best(curve []Point, allowed func(Point) bool) int {
	at := -1
	for k, p := range curve {
		if allowed(p) && (at < 0 || p.Accuracy > curve[at].Accuracy) {
			at = k
		}
	}
	return at
}
