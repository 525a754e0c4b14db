package elect_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// withoutExamples returns rows of generate in which the last label has no examples: voters give it a hundredth of its
// usual share, as if they knew one text of it.
func withoutExamples(seed uint64, n int) (labels []string, known, unseen []sdk.TrainingRow) {
	labels, rows := generate(seed, n)
	alone := labels[len(labels)-1]
	for _, r := range of(rows, "good", "middling") {
		for i := range r.Samples {
			r.Samples[i].Answers = slices.Clone(r.Samples[i].Answers)
			for j, a := range r.Samples[i].Answers {
				if a.Label == alone {
					r.Samples[i].Answers[j].Weight = a.Weight / 100
				}
			}
		}
		if r.Label == alone {
			unseen = append(unseen, r)
		} else {
			known = append(known, r)
		}
	}
	return labels, known, unseen
}

// TestAlone: a label without examples wins its own rows far more often than without the raise. It takes hardly any
// other rows, and the confidence in these stays calibrated.
func TestAlone(t *testing.T) {
	labels, learnt, _ := withoutExamples(1, 2000)
	_, items, own := withoutExamples(2, 4000)
	alone := labels[len(labels)-1]
	described := map[string]sdk.Described{alone: {Text: "x", Alone: true}, labels[0]: {Text: "y"}}
	before, after := fitted(t, learnt), fitted(t, append([]sdk.TrainingRow{{Label: alone}}, learnt...))
	share := func(e sdk.Elector, rows []sdk.TrainingRow) (right, sure float64) {
		b := sdk.Batch{Labels: labels, Described: described}
		for _, r := range rows {
			b.Items = append(b.Items, sdk.Item{ID: r.ID, Samples: r.Samples})
		}
		verdicts, err := e.Elect(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if v.Answer == rows[i].Label {
				right++
			}
			sure += v.Confidence
		}
		return right / float64(len(rows)), sure / float64(len(rows))
	}
	few, _ := share(before, own)
	most, _ := share(after, own)
	othersBefore, _ := share(before, items)
	others, sure := share(after, items)
	t.Logf("right on rows of the label %.3f, before %.3f; on others %.4f, before %.4f, confidence %.3f", most, few, others, othersBefore, sure)
	if most < few+.2 {
		t.Error("the label is hardly elected")
	}
	if others < othersBefore-.006 || sure < others-.03 || sure > others+.03 {
		t.Error("the other labels pay for it")
	}
}

// TestRaiseIsAnArgument: a tuned file elects like the learned model.
func TestRaiseIsAnArgument(t *testing.T) {
	labels, learnt, own := withoutExamples(3, 600)
	alone := labels[len(labels)-1]
	first := fitted(t, append([]sdk.TrainingRow{{Label: alone}}, learnt...))
	second := open(t, elect.Learned(), string(resolved(t, first)))
	b := sdk.Batch{Labels: labels, Described: map[string]sdk.Described{alone: {Alone: true}}}
	for _, r := range own {
		b.Items = append(b.Items, sdk.Item{ID: r.ID, Samples: r.Samples})
	}
	want, err := first.Elect(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := second.Elect(t.Context(), b)
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%+v, error %v; want %+v", got, err, want)
	}
}

// TestRaiseCost: with a higher cost, labels without examples win more often, and others lose at most that share.
// Wrong answers with such labels are flagged by their confidence: half of the raise is no evidence.
func TestRaiseCost(t *testing.T) {
	labels, learnt, _ := withoutExamples(1, 1000)
	_, items, own := withoutExamples(2, 4000)
	alone := labels[len(labels)-1]
	var own0, others0 float64
	wrong, spared := 0, 0
	for _, config := range []string{`{}`, `{"raise_cost": 0.02}`} {
		setup := sdk.Setup{StateDir: t.TempDir()}
		e := must.Get(elect.Learned().Open(t.Context(), setup, []byte(config)))(t)
		rows := append([]sdk.TrainingRow{{Label: alone}}, learnt...)
		must.Do(t, e.(sdk.Fitter).Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(rows, nil) }))
		share := func(rows []sdk.TrainingRow) (right float64) {
			b := sdk.Batch{Labels: labels, Described: map[string]sdk.Described{alone: {Text: "x", Alone: true}}}
			for _, r := range rows {
				b.Items = append(b.Items, sdk.Item{ID: r.ID, Samples: r.Samples})
			}
			for i, v := range must.Get(e.(sdk.Elector).Elect(t.Context(), b))(t) {
				switch v.Answer {
				case rows[i].Label:
					right += 1 / float64(len(rows))
				case alone:
					if wrong++; v.Confidence >= .5 {
						spared++
					}
				}
			}
			return right
		}
		of, others := share(own), share(items)
		if own0 > 0 && (of < own0+.03 || others < others0-.03) {
			t.Errorf("%.3f and %.3f are right, with nothing to lose %.3f and %.3f", of, others, own0, others0)
		}
		t.Logf("%s: %.3f of the label, %.4f of others; %d of %d wrong answers with it are sure", config, of, others, spared, wrong)
		if spared > wrong/20 {
			t.Error("they are not flagged")
		}
		own0, others0 = of, others
	}
}

// TestOneExample: if a label has one row in the knowledge, and all rows are learned, statistical voters never make it
// surer than .8. A voter with single answers may. Tuned files keep the bound.
func TestOneExample(t *testing.T) {
	labels := []string{"a", "b", "c"}
	row := func(i int, label string, heldOut, model bool) sdk.TrainingRow {
		r := sdk.TrainingRow{ID: fmt.Sprintf("%04d", i), Label: label, HeldOut: heldOut, Samples: []sdk.Sample{learnedSample("near", label, .98, "b", .01, "a", .01)}}
		if model {
			r.Samples = append(r.Samples, learnedSample("llm", label, 1.))
		}
		return r
	}
	for name, test := range map[string]struct {
		rows           int // rows of a and of b
		c              int // rows of c
		heldOut, model bool
		bound          bool
	}{
		"one row":                        {30, 1, true, false, true},
		"two rows":                       {30, 2, true, false, false},
		"rows that somebody gave":        {30, 1, false, false, false},
		"more rows than are learnt from": {500, 1, true, false, false},
		"a model says so":                {30, 1, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []sdk.TrainingRow
			for i := range test.rows {
				rows = append(rows, row(2*i, "a", test.heldOut, test.model), row(2*i+1, "b", test.heldOut, test.model))
			}
			for i := range test.c {
				rows = append(rows, row(5000+i, "c", test.heldOut, test.model))
			}
			first := fitted(t, rows)
			for _, e := range []sdk.Elector{first, open(t, elect.Learned(), string(resolved(t, first)))} {
				for _, v := range learnedElect(t, e, labels, []sdk.TrainingRow{row(0, "c", true, test.model), row(0, "a", true, test.model)}) {
					if v.Answer == "" || (v.Confidence < .8) != (test.bound && v.Answer == "c") {
						t.Errorf("%s has the confidence %.3f", v.Answer, v.Confidence)
					}
				}
			}
		})
	}
}
