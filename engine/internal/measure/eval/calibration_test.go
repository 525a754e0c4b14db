package eval

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
)

// TestCalibration has five answers, two of them wrong, a failed item, and two items without an
// answer, rightly and wrongly.
func TestCalibration(t *testing.T) {
	results := []outcome.Result{
		{Expected: "a", Answer: "a", Verdict: result.Verdict{Confidence: .9, Agreement: .3}},
		{Expected: "a", Answer: "b", Verdict: result.Verdict{Confidence: .9, Agreement: .3}},
		{Expected: "b", Answer: "b", Verdict: result.Verdict{Confidence: .9}},
		{Expected: "b", Answer: "b", Verdict: result.Verdict{Confidence: .5}},
		{Expected: "oos", Answer: "a", Verdict: result.Verdict{Confidence: .2}},
		{Expected: "a", Failure: &outcome.Failure{Err: errors.New("down")}, Answer: "a", Verdict: result.Verdict{Confidence: .8}},
		{Expected: "oos"},
		{Expected: "b"},
		{Answer: "b", Verdict: result.Verdict{Confidence: .1}},                        // nothing expected
		{Expected: "a", RetrievalOnly: true, Verdict: result.Verdict{Confidence: .1}}, // nothing elected
		{Expected: "a", FreeText: true, Answer: "about that"},                         // a text
	}
	c := NewConfidences("a", "b")
	for _, r := range results {
		c.Add(r)
	}
	want := &Calibration{
		Measured: "confidence",
		// .9 is in bin 14, which ends at .933: 2 of 3 right, |2 - 2.7|; .5 in bin 8: |1 - .5|; .2 in
		// bin 3: |0 - .2|; for 0 there is no error.
		ECE:   (.7 + .5 + .2) / 8,
		NLL:   -(2*math.Log(.9) + math.Log(.1) + math.Log(.5) + math.Log(.8) + 3*math.Log(1-1e-6)) / 8,
		Brier: (.01 + .81 + .01 + .25 + .04) / 8,
		// Out of scope are .2 and 0; in scope are three times .9, .5 and twice 0.
		DoubtAUROC: (4 + 5) / 12.,
		Coverage: []Coverage{
			{.5, 3. / 4, .5},
			{.6, 3. / 4.8, .2},          // 4 items, and .8 of the item with .2
			{.7, (3 + .6/3) / 5.6, 0},   // and .6 of the last three, one of which is right
			{.8, (3 + 1.4/3) / 6.4, 0},  //
			{.9, (3 + 2.2/3) / 7.2, 0},  //
			{.95, (3 + 2.6/3) / 7.6, 0}, //
			{1, 4. / 8, 0},              // equals the accuracy
		},
	}
	got := c.Report()
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(Calibration{}, "Chance")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// The first bin has two items without an answer, and the failed item.
	bins := []Bin{{0, 1. / 15, 3, 0, 0}, {2. / 15, 3. / 15, 1, .2, 0}, {7. / 15, 8. / 15, 1, .5, 1}, {13. / 15, 14. / 15, 3, .9, 2. / 3}}
	if d := cmp.Diff(bins, c.Bins(), cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("bins (-want +got):\n%s", d)
	}
	curve := c.Curve()
	if len(curve) != 50 || math.Abs(curve[24].Accuracy-.75) > 1e-9 || curve[49].Share != 1 || math.Abs(curve[49].Accuracy-.5) > 1e-9 {
		t.Errorf("the curve is %v", curve)
	}
	if got.Chance <= 0 || got.Chance >= 1 {
		t.Errorf("by chance %v", got.Chance)
	}
	if again := c.Report(); again.Chance != got.Chance {
		t.Errorf("by chance %v, then %v", got.Chance, again.Chance)
	}
}

// TestAUROC counts all pairs.
func TestAUROC(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := NewConfidences("a")
	var in, out []float64
	for i := range 300 {
		r := outcome.Result{Expected: "a", Answer: "a", Verdict: result.Verdict{Confidence: .9, Unknown: float64(1+random.IntN(20)) / 30}} // with ties
		if i%3 == 0 {
			r.Expected, r.Unknown = "oos", r.Unknown+.3
			out = append(out, r.Unknown)
		} else {
			in = append(in, r.Unknown)
		}
		c.Add(r)
	}
	higher := 0.
	for _, o := range out {
		for _, i := range in {
			switch {
			case o > i:
				higher++
			case o == i:
				higher += .5
			}
		}
	}
	r := c.Report()
	if want := higher / float64(len(in)*len(out)); math.Abs(r.UnknownAUROC-want) > 1e-9 || r.DoubtAUROC != .5 {
		t.Errorf("%v and %v, want %v and a half", r.UnknownAUROC, r.DoubtAUROC, want)
	}
}

// TestAgreementStandsIn: without a confidence, the agreement is measured. A certain wrong answer
// has a high but finite cost.
func TestAgreementStandsIn(t *testing.T) {
	c := NewConfidences()
	if r := c.Report(); r != nil {
		t.Errorf("of nothing: %+v", r)
	}
	c.Add(outcome.Result{Expected: "a", Answer: "a", Verdict: result.Verdict{Agreement: 1}})
	c.Add(outcome.Result{Expected: "a", Answer: "b", Verdict: result.Verdict{Agreement: 1}})
	got := c.Report()
	if got.Measured != "agreement" || got.ECE != .5 || got.Brier != .5 || got.Chance != 0 {
		t.Errorf("got %+v", got)
	}
	if want := -(math.Log(1-1e-6) + math.Log(1e-6)) / 2; math.Abs(got.NLL-want) > 1e-9 {
		t.Errorf("NLL %v, want %v", got.NLL, want)
	}
}

func TestBin(t *testing.T) {
	for confidence, want := range map[float64]int{0: 0, .001: 0, 1. / 15: 0, .0667: 1, .2: 2, .201: 3, .4: 5, .6: 8, .999: 14, 1: 14} {
		if got := bin(confidence); got != want {
			t.Errorf("%v is in bin %d, want %d", confidence, got, want)
		}
	}
}

// TestChance: calibrated confidences have an expected calibration error above Chance in one draw of
// twenty, for any number of items. Confidences that are too high are detected.
func TestChance(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	measure := func(items int, shift float64) *Calibration {
		c := NewConfidences()
		for range items {
			confidence := math.Sqrt(random.Float64()) // more high confidences than low ones
			r := outcome.Result{Expected: "a", Answer: "b", Verdict: result.Verdict{Confidence: confidence}}
			if random.Float64() < confidence-shift {
				r.Answer = "a"
			}
			c.Add(r)
		}
		return c.Report()
	}
	for _, items := range []int{40, 250} {
		const draws = 400
		above := 0
		for range draws {
			if r := measure(items, 0); r.ECE > r.Chance {
				above++
			}
		}
		// Three standard errors around one in twenty.
		if spread := 3 * math.Sqrt(draws*.05*.95); math.Abs(float64(above)-draws*.05) > spread {
			t.Errorf("%d items: %d of %d calibrated draws are above what chance gives", items, above, draws)
		}
	}
	if r := measure(2000, .1); r.ECE <= r.Chance {
		t.Errorf("confidences that are .1 too high: ECE %v, by chance %v", r.ECE, r.Chance)
	}
}
