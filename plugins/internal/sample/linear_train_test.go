package sample

import (
	"math"
	"testing"
)

// Probabilities say how often answers are right, be the labels easy or hard to tell; they
// do not without the scale, and no answer depends on it.
func TestCalibrated(t *testing.T) {
	for _, noise := range []float64{.3, .45, .6} {
		all := cloud(3000, 40, 24, noise)
		v := fitted(t, `{"features": 0}`, all[:1000])
		m := v.model.Load()
		unscaled := *m
		unscaled.scale = 1
		scaled, raw, share := 0.0, 0.0, right(t, v, all[1000:])
		for _, item := range items(all[1000:]) {
			e := example{vector: item.Vector}
			answers, same := m.ballot(e).Answers, unscaled.ballot(e).Answers
			if answers[0].Label != same[0].Label {
				t.Fatalf("%s: answer %s, without the scale %s", item.ID, answers[0].Label, same[0].Label)
			}
			scaled += answers[0].Weight / 2000
			raw += same[0].Weight / 2000
		}
		if off := math.Abs(scaled - share); off > .04 || off > math.Abs(raw-share)/2 {
			t.Errorf("noise %v: right on %.3f, mean probability %.3f, without the scale %.3f", noise, share, scaled, raw)
		}
	}
}

func TestLikeliest(t *testing.T) {
	// Of a hundred examples ninety are right, with one score above three others.
	h := &heldOut{}
	for i := range 100 {
		scores := []float32{0, 0, 0, 0}
		scores[i%4] = 2
		h.scores, h.truth = append(h.scores, scores), append(h.truth, (i+i/90)%4)
	}
	doubt := 1 / 102.
	share := .9*(1-doubt) + .1*doubt/3
	want := math.Log(share/((1-share)/3)) / 2
	if got := h.likeliest(); math.Abs(got-want) > .01 {
		t.Errorf("factor %v, want %v", got, want)
	}
	for i := range h.truth {
		h.truth[i] = i % 4
	}
	want = math.Log((1-doubt)/(doubt/3)) / 2
	if got := h.likeliest(); math.Abs(got-want) > .01 {
		t.Errorf("all right: factor %v, want %v", got, want)
	}
	if got := new(heldOut).scale(newModel([]string{"a"}, 1, nil), []example{{vector: []float32{1}}}); got != 1 {
		t.Errorf("of nothing: factor %v", got)
	}
}

func TestSpread(t *testing.T) {
	m := newModel([]string{"a", "b"}, 2, nil)
	copy(m.weights, []float32{3, 1})
	copy(m.weights[m.width:], []float32{-1, 3})
	got := m.spread([]example{{vector: []float32{1, 0}}, {vector: []float32{0, 1}}})
	if want := math.Sqrt((1 + 4) / 2.); math.Abs(got-want) > 1e-6 {
		t.Errorf("spread %v, want %v", got, want)
	}
}
