package sample

import (
	"math"
	"testing"
)

// Probabilities say how often answers are right, both for easy and for hard labels. Without the scale they do not. No
// answer depends on the scale.
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
		if off := math.Abs(scaled - share); off > .05 || off > math.Abs(raw-share)/2 {
			t.Errorf("noise %v: right on %.3f, mean probability %.3f, without the scale %.3f", noise, share, scaled, raw)
		}
	}
}

func TestLikeliest(t *testing.T) {
	// Of a hundred examples ninety are right; one score lies above three others.
	h := &heldOut{}
	for i := range 100 {
		scores := []float32{0, 0, 0, 0}
		scores[i%4] = 2
		h.scores, h.truth = append(h.scores, scores), append(h.truth, []int{(i + i/90) % 4})
	}
	doubt := 1 / 102.
	share := .9*(1-doubt) + .1*doubt/3
	want := math.Log(share/((1-share)/3)) / 2
	if got := h.likeliest(0); math.Abs(got-want) > .01 {
		t.Errorf("factor %v, want %v", got, want)
	}
	for i := range h.truth {
		h.truth[i] = []int{i % 4}
	}
	want = math.Log((1-doubt)/(doubt/3)) / 2
	if got := h.likeliest(0); math.Abs(got-want) > .01 {
		t.Errorf("all right: factor %v, want %v", got, want)
	}
	if got := new(heldOut).likeliest(7); got != 7 {
		t.Errorf("of nothing: factor %v", got)
	}
}
