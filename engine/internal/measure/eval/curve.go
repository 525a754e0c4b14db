package eval

import (
	"cmp"
	"math"
	"slices"
)

// This file estimates how much more examples would help, from figures with fewer examples.
//
// The error of labels is assumed to be a power of their numbers of rows (Cortes et al., "Learning curves:
// asymptotic values and rate of convergence", NIPS 1993, with the asymptote 0): twice as many rows
// multiply the error by the same factor, for every label. This is the mean factor of all doublings or, if
// greater, the factor of the last doubling, because curves flatten. A label's own error is the error of
// its items, shrunk towards the error of labels with a similar number of rows, as if it had one more
// expected error, because few items say little.

// Curve is the accuracy of a pipeline with fewer rows in its knowledge, and an estimate with more.
// Items whose label is unknown to their fold do not count.
type Curve struct {
	Folds  int          `json:"folds"`
	Points []CurvePoint `json:"points"` // by rising size; the last has all rows
	Groups []CurveGroup `json:"groups"` // of labels, by their rows; with all rows
	// Factor is the factor of the error when the rows of a label double; 0: no label has enough rows to tell.
	Factor float64 `json:"factor,omitempty"`
	// Doubled is the expected accuracy if every label had twice as many rows.
	Doubled float64     `json:"accuracy_doubled,omitempty"`
	Labels  []CurveGain `json:"labels"` // all labels, the greatest gain first
}

// CurvePoint is the accuracy with at most Most rows for each label.
type CurvePoint struct {
	Most     int      `json:"most"` // maximum of a label's rows in the knowledge of a fold; 0: all
	Items    int      `json:"items"`
	Right    int      `json:"right"`
	Accuracy float64  `json:"accuracy"`
	Interval Interval `json:"accuracy_interval"`

	items, errors map[string]int // by label
}

// CurveGroup is the accuracy of labels with a similar number of rows.
type CurveGroup struct {
	From     int      `json:"from"` // rows
	To       int      `json:"to"`   // 0: without end
	Labels   int      `json:"labels"`
	Items    int      `json:"items"`
	Right    int      `json:"right"`
	Accuracy float64  `json:"accuracy"`
	Interval Interval `json:"accuracy_interval"`
}

// CurveGain is the expected gain from more rows of a label.
type CurveGain struct {
	Label    string  `json:"label"`
	Rows     int     `json:"rows"`
	Accuracy float64 `json:"accuracy"` // of the label's items
	Now      float64 `json:"now"`      // the same, shrunk towards the accuracy of labels with as many rows
	Doubled  float64 `json:"doubled"`  // expected with twice as many rows
}

// NewCurvePoint returns the point of a report.
func NewCurvePoint(most int, r Report) CurvePoint {
	p := CurvePoint{Most: most, items: map[string]int{}, errors: map[string]int{}}
	for _, l := range r.Labels {
		if l.Support == 0 { // the label is only answered
			continue
		}
		right := int(math.Round(l.Recall * float64(l.Support)))
		p.items[l.Label], p.errors[l.Label] = l.Support, l.Support-right
		p.Items, p.Right = p.Items+l.Support, p.Right+right
	}
	p.Accuracy, p.Interval = share(p.Right, p.Items), Wilson(p.Right, p.Items)
	return p
}

// curveGroups are the numbers of rows that begin a group.
var curveGroups = []int{1, 4, 9, 25}

// NewCurve computes the figures. rows has the number of rows of each label, points are by rising size
// and end with all rows.
func NewCurve(folds int, rows map[string]int, points []CurvePoint) Curve {
	c := Curve{Folds: folds, Points: points}
	last := points[len(points)-1]
	for i, from := range curveGroups {
		g := CurveGroup{From: from}
		if i+1 < len(curveGroups) {
			g.To = curveGroups[i+1] - 1
		}
		for label, items := range last.items {
			if rows[label] < g.From || g.To > 0 && rows[label] > g.To {
				continue
			}
			g.Labels, g.Items, g.Right = g.Labels+1, g.Items+items, g.Right+items-last.errors[label]
		}
		if g.Accuracy, g.Interval = share(g.Right, g.Items), Wilson(g.Right, g.Items); g.Labels > 0 {
			c.Groups = append(c.Groups, g)
		}
	}
	if c.Factor = c.factor(rows); c.Factor > 0 {
		c.Doubled = 1 - c.Factor*(1-last.Accuracy)
		c.gains(rows)
	}
	return c
}

// telling is how many errors the last doubling needs to show that the curve flattens.
const telling = 100

// factor compares the errors at each size and at twice the size, for labels with enough rows in the
// knowledge of a fold. 0: there are no errors to compare.
func (c *Curve) factor(rows map[string]int) float64 {
	var few, many int // errors before and after doublings
	latest := 0.
	for i, p := range c.Points[:len(c.Points)-1] {
		before, after := 0, 0
		for label, errors := range p.errors {
			if rows[label]*(c.Folds-1) >= 2*p.Most*c.Folds {
				before, after = before+errors, after+c.Points[i+1].errors[label]
			}
		}
		if few, many = few+before, many+after; before >= telling {
			latest = share(after, before)
		}
	}
	return min(1, max(share(many, few), latest))
}

// gains estimates the gain from more rows of each label.
func (c *Curve) gains(rows map[string]int) {
	last := c.Points[len(c.Points)-1]
	power := func(label string) float64 { return math.Pow(c.Factor, math.Log2(float64(rows[label]))) }
	weight := 0.
	for label, items := range last.items {
		weight += float64(items) * power(label)
	}
	scale := float64(last.Items-last.Right) / weight
	for label, items := range last.items {
		usual, errors := min(1, scale*power(label)), float64(last.errors[label])
		wrong := min(1, usual*(errors+1)/(usual*float64(items)+1))
		c.Labels = append(c.Labels, CurveGain{
			Label: label, Rows: rows[label], Accuracy: 1 - errors/float64(items), Now: 1 - wrong, Doubled: 1 - c.Factor*wrong,
		})
	}
	slices.SortFunc(c.Labels, func(a, b CurveGain) int {
		return cmp.Or(cmp.Compare(b.Doubled-b.Now, a.Doubled-a.Now), cmp.Compare(a.Label, b.Label))
	})
}
