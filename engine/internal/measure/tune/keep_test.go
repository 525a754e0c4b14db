package tune

import (
	"math"
	"testing"
)

// Found weights replace those of the file if more answers are right beyond chance, or if no fewer
// are and the confidences are closer to the truth beyond chance.
func TestKeeps(t *testing.T) {
	better, even, worse := Difference{.02, .01, .03}, Difference{0, -.01, .01}, Difference{-.002, -.01, .01}
	for _, c := range []struct {
		name       string
		gain, sure Difference
		want       bool
	}{
		{"more are right", better, worse, true},
		{"as many, and surer", even, better, true},
		{"as many, and as sure", even, even, false},
		{"fewer, and surer", worse, better, false},
	} {
		if o := (Outcome{Gain: c.gain, Sure: c.sure}); o.keeps() != c.want {
			t.Errorf("%s: kept is %v", c.name, !c.want)
		}
	}
	w := work{Task: &Task{Labels: []string{"a", "b", "c"}}}
	for _, c := range []struct {
		score
		want float64
	}{{score{true, 1}, 1}, {score{true, .1}, 5. / 6}, {score{false, .8}, 5. / 6}, {score{false, 1}, 0}, {score{true, 0}, 0}} {
		if got := w.surprise(c.score); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v scores %v, want %v", c.score, got, c.want)
		}
	}
}
