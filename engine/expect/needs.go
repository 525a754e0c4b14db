package expect

import (
	"fmt"
	"math"
	"sort"

	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/rule"
)

// need adds what would be needed for those of the comparisons to hold that are about the figure
// and do not.
func (f *Figure) need(all []rule.Comparison) {
	v := f.seen()
	for _, c := range all {
		value := v.Number
		switch {
		case c.Figure.String() != f.Figure:
			continue
		case c.Limit == "low":
			value = v.Low
		case c.Limit == "high":
			value = v.High
		}
		if !holds(value, c) {
			f.Needs = append(f.Needs, f.needed(value, c))
		}
	}
}

func holds(value float64, c rule.Comparison) bool {
	switch c.Op {
	case ">=":
		return value >= c.Number
	case ">":
		return value > c.Number
	case "<=":
		return value <= c.Number
	case "<":
		return value < c.Number
	}
	return value == c.Number
}

// needed says in words what a comparison needs: of a share as a number of items.
func (f *Figure) needed(value float64, c rule.Comparison) string {
	what := c.Figure.String()
	if c.Limit != "" {
		what = fmt.Sprintf("%s(%s)", c.Limit, what)
	}
	asked := fmt.Sprintf("%s %s %v", what, c.Op, c.Number)
	switch {
	case value == c.Number && f.Of == 0:
		return asked + ": it is exactly that"
	case f.Of == 0 || c.Op == "==":
		return fmt.Sprintf("%s: it is off by %.3g", asked, math.Abs(value-c.Number))
	}
	of := func(count, of int) float64 {
		switch i := interval.Wilson(count, of); c.Limit {
		case "low":
			return i.Low
		case "high":
			return i.High
		}
		return float64(count) / float64(of)
	}
	if c.Op[0] == '>' {
		least := sort.Search(f.Of+1, func(n int) bool { return holds(of(n, f.Of), c) })
		if least <= f.Of {
			return fmt.Sprintf("%s needs at least %d of %d, %d more", asked, least, f.Of, least-f.Count)
		}
		return tooFew(asked, f.Of, func(n int) bool { return holds(of(n, n), c) })
	}
	first := sort.Search(f.Of+1, func(n int) bool { return !holds(of(n, f.Of), c) })
	if first > 0 {
		return fmt.Sprintf("%s allows at most %d of %d, %d fewer", asked, first-1, f.Of, f.Count-first+1)
	}
	return tooFew(asked, f.Of, func(n int) bool { return holds(of(0, n), c) })
}

// mostItems is how many items are imagined.
const mostItems = 1_000_000_000

// tooFew says that a number of items cannot show what is asked, and how many can.
func tooFew(asked string, items int, shows func(n int) bool) string {
	n := sort.Search(mostItems, shows)
	if n == mostItems {
		return asked + " holds of no number of items"
	}
	return fmt.Sprintf("%s cannot be shown by %d items, whatever their answers are: it takes at least %d", asked, items, n)
}
