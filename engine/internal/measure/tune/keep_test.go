package tune

import (
	"math"
	"testing"
)

// Found weights replace the file's weights if more answers are right, by more than chance, or if no
// fewer answers are right and the confidences are closer to the truth, by more than chance.
func TestKeeps(t *testing.T) {
	better, even, worse := Difference{.02, .01, .03}, Difference{0, -.01, .01}, Difference{-.002, -.01, .01}
	for _, c := range []struct {
		name              string
		gain, sure, known Difference
		want              bool
	}{
		{"more are right", better, worse, worse, true},
		{"as many, and surer", even, better, even, true},
		{"as many, and as sure", even, even, even, false},
		{"fewer, and surer", worse, better, even, false},
		{"fewer by chance, and unknown ones are found", worse, worse, better, true},
		{"certainly fewer, and unknown ones are found", Difference{-.02, -.03, -.01}, worse, better, false},
	} {
		if o := (Outcome{Gain: c.gain, Sure: c.sure, Known: c.known}); o.keeps() != c.want {
			t.Errorf("%s: kept is %v", c.name, !c.want)
		}
	}
	w := work{Task: &Task{Labels: []string{"a", "b", "c"}}}
	for _, c := range []struct {
		score
		want float64
	}{{score{right: true, confidence: 1}, 1}, {score{right: true, confidence: .1}, 5. / 6}, {score{confidence: .8}, 5. / 6}, {score{confidence: 1}, 0}, {score{right: true}, 0}} {
		if got := w.logScore(c.score); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v scores %v, want %v", c.score, got, c.want)
		}
	}
	for _, c := range []struct {
		score
		want float64
	}{{score{outside: true, unknown: 1}, 1}, {score{outside: true, unknown: .5}, .75}, {score{unknown: .5}, .75}, {score{unknown: 1}, 0}, {score{outside: true}, 0}} {
		if got := c.scope(); got != c.want {
			t.Errorf("%+v scores %v, want %v", c.score, got, c.want)
		}
	}
}
