package eval

import (
	"math"
	"testing"
)

// powerPoint is a point for labels whose error is a power of their number of rows in the knowledge
// of a fold.
func powerPoint(most int, rows map[string]int, error func(label string, rows float64) float64) CurvePoint {
	var r Report
	for label, n := range rows {
		have := .8 * float64(n)
		if most > 0 {
			have = min(have, float64(most))
		}
		r.Labels = append(r.Labels, Label{Label: label, Support: 1000 * n, Recall: 1 - error(label, have)})
	}
	r.Labels = append(r.Labels, Label{Label: "only answered", Answered: 3})
	return NewCurvePoint(most, r)
}

func TestCurve(t *testing.T) {
	rows := map[string]int{"hard": 2, "rare": 3, "usual": 5, "large": 40, "largest": 41}
	own := map[string]float64{"hard": 1.6, "rare": .8, "usual": 1, "large": 1, "largest": 1}
	of := func(label string, n float64) float64 { return .5 * own[label] * math.Pow(.8, math.Log2(n)) }
	var points []CurvePoint
	for _, most := range []int{1, 2, 4, 8, 16, 32, 0} {
		points = append(points, powerPoint(most, rows, of))
	}
	c := NewCurve(5, rows, points)
	if math.Abs(c.Factor-.8) > .001 {
		t.Errorf("doubling multiplies the error by %v, want 0.8", c.Factor)
	}
	if want := 1 - .8*(1-points[6].Accuracy); math.Abs(c.Doubled-want) > .001 {
		t.Errorf("with twice as many rows %v, want %v", c.Doubled, want)
	}
	for i, want := range []CurveGroup{{From: 1, To: 3, Labels: 2, Items: 5000}, {From: 4, To: 8, Labels: 1, Items: 5000}, {From: 25, Labels: 2, Items: 81000}} {
		if g := c.Groups[i]; g.From != want.From || g.To != want.To || g.Labels != want.Labels || g.Items != want.Items {
			t.Errorf("group %+v, want %+v", g, want)
		}
	}
	if l := c.Labels[0]; l.Label != "hard" || l.Rows != 2 || math.Abs(l.Doubled-(1-of("hard", 3.2))) > .005 {
		t.Errorf("the label that gains most is %+v", l)
	}
	if l := c.Labels[4]; l.Label != "largest" {
		t.Errorf("the label that gains least is %+v", l)
	}
}

// TestCurveFlattens: the last doubling counts if it left more errors than the doublings before.
func TestCurveFlattens(t *testing.T) {
	rows := map[string]int{"a": 50}
	point := func(most, wrong int) CurvePoint {
		return NewCurvePoint(most, Report{Labels: []Label{{Label: "a", Support: 1000, Recall: 1 - float64(wrong)/1000}}})
	}
	for _, c := range []struct {
		points []CurvePoint
		want   float64
	}{
		{[]CurvePoint{point(8, 400), point(16, 200), point(32, 180), point(0, 175)}, .9},
		{[]CurvePoint{point(8, 400), point(16, 300), point(32, 150), point(0, 140)}, 450. / 700},
		{[]CurvePoint{point(8, 120), point(16, 60), point(32, 60), point(0, 60)}, 120. / 180}, // 60 errors say little
	} {
		if got := NewCurve(5, rows, c.points).Factor; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("the factor is %v, want %v", got, c.want)
		}
	}
}

// TestCurveFew: one item says little about a label, and without errors no gain is expected.
func TestCurveFew(t *testing.T) {
	rows := map[string]int{"a": 50, "b": 50}
	point := func(most, wrong int) CurvePoint {
		return NewCurvePoint(most, Report{Labels: []Label{
			{Label: "a", Support: 100, Recall: 1 - float64(wrong)/100},
			{Label: "b", Support: 1, Recall: 0},
		}})
	}
	c := NewCurve(5, rows, []CurvePoint{point(16, 40), point(32, 20), point(0, 19)})
	if l := c.Labels[0]; l.Label != "b" || l.Accuracy != 0 || l.Now < .5 || l.Now > .75 {
		t.Errorf("a label with one wrong item is %+v", l)
	}
	for i := range c.Points {
		c.Points[i] = NewCurvePoint(c.Points[i].Most, Report{Labels: []Label{{Label: "a", Support: 9, Recall: 1}}})
	}
	if c = NewCurve(5, rows, c.Points); c.Factor != 0 || len(c.Labels) > 0 {
		t.Errorf("without errors: %+v", c)
	}
}
