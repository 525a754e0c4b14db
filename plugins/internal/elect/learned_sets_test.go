package elect_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var sets = sdk.Setup{Labels: sdk.LabelForm{Many: true}}

// setRows makes rows with one to three of six labels, and two voters: one knows the labels, the other guesses.
func setRows(n int, seed uint64) []sdk.TrainingRow {
	random := rand.New(rand.NewPCG(seed, 1))
	rows := make([]sdk.TrainingRow, n)
	for i := range rows {
		var set []string
		for _, l := range random.Perm(6)[:1+random.IntN(3)] {
			set = append(set, fmt.Sprint("l", l))
		}
		good, bad := sdk.Sample{Voter: "good"}, sdk.Sample{Voter: "bad"}
		for l := range 6 {
			label := fmt.Sprint("l", l)
			odds := -2 + 1.2*random.NormFloat64()
			if slices.Contains(set, label) {
				odds += 3.4
			}
			good.Answers = append(good.Answers, sdk.Answer{Label: label, Weight: 1 / (1 + math.Exp(-odds)), Accepted: true})
			bad.Answers = append(bad.Answers, sdk.Answer{Label: label, Weight: random.Float64(), Accepted: true})
		}
		rows[i] = sdk.TrainingRow{ID: fmt.Sprint(seed, " ", i), Label: sdk.JoinLabels(set), Samples: []sdk.Sample{good, bad}}
	}
	return rows
}

// electSets fits an election to rows, and returns its verdicts on other rows.
func electSets(t *testing.T, config string, rows, others []sdk.TrainingRow) (sdk.Elector, []sdk.Verdict) {
	t.Helper()
	setup := sets
	setup.StateDir = t.TempDir()
	stage := must.Get(elect.Learned().Open(t.Context(), setup, []byte(config)))(t)
	if rows != nil {
		must.Do(t, stage.(sdk.Fitter).Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(rows, nil) }))
	}
	return stage.(sdk.Elector), verdictsOf(t, stage.(sdk.Elector), others)
}

func verdictsOf(t *testing.T, e sdk.Elector, rows []sdk.TrainingRow) []sdk.Verdict {
	t.Helper()
	b := sdk.Batch{Labels: []string{"l0", "l1", "l2", "l3", "l4", "l5"}}
	for _, r := range rows {
		b.Items = append(b.Items, sdk.Item{ID: r.ID, Samples: r.Samples})
	}
	return must.Get(e.Elect(t.Context(), b))(t)
}

// figures returns F1 and precision over all labels, the mean confidence, and the share of right sets.
func figures(rows []sdk.TrainingRow, verdicts []sdk.Verdict) (f1, precision, confidence, exact float64) {
	right, answered, expected := 0., 0., 0.
	for i, v := range verdicts {
		want, got := sets.Labels.Split(rows[i].Label), sets.Labels.Split(v.Answer)
		for _, l := range got {
			if slices.Contains(want, l) {
				right++
			}
		}
		answered, expected, confidence = answered+float64(len(got)), expected+float64(len(want)), confidence+v.Confidence/float64(len(verdicts))
		if v.Answer == rows[i].Label {
			exact += 1 / float64(len(verdicts))
		}
	}
	return 2 * right / (answered + expected), right / answered, confidence, exact
}

func TestLearnedSets(t *testing.T) {
	rows, others := setRows(600, 1), setRows(2000, 2)
	e, verdicts := electSets(t, `{}`, rows, others)
	f1, precision, confidence, exact := figures(others, verdicts)
	var alone []sdk.TrainingRow
	for _, r := range rows {
		r.Samples = r.Samples[:1]
		alone = append(alone, r)
	}
	_, aloneVerdicts := electSets(t, `{}`, alone, others)
	best, _, _, _ := figures(others, aloneVerdicts)
	if f1 < .84 || f1 < best-.01 {
		t.Errorf("F1 %.3f; without the voter that guesses %.3f", f1, best)
	}
	if math.Abs(confidence-exact) > .04 {
		t.Errorf("the confidence is %.3f, and %.3f of the sets are right", confidence, exact)
	}
	for i, v := range verdicts {
		var labels []string
		for j, l := range v.Labels {
			if labels = append(labels, l.Label); j > 0 && l.Confidence > v.Labels[j-1].Confidence {
				t.Fatalf("row %d: %+v are not in order", i, v.Labels)
			}
		}
		if v.Answer != sdk.JoinLabels(labels) || v.Answer == "" {
			t.Fatalf("row %d: the answer is %q, and its labels are %q", i, v.Answer, labels)
		}
	}

	_, surer := electSets(t, `{"precision": 0.95}`, rows, others)
	if _, promised, _, _ := figures(others, surer); promised < .94 || promised <= precision {
		t.Errorf("precision %.3f, where 0.95 was asked for; else it is %.3f", promised, precision)
	}

	// Likely labels follow the answer's labels.
	_, all := electSets(t, `{"labels": 6}`, rows, others[:50])
	for i, v := range all {
		if n := len(verdicts[i].Labels); v.Answer != verdicts[i].Answer || len(v.Labels) != 6 || !slices.Equal(v.Labels[:n], verdicts[i].Labels) || v.Labels[n].Confidence > v.Labels[n-1].Confidence {
			t.Fatalf("row %d: %+v with six labels, %+v with those of the answer", i, v, verdicts[i])
		}
	}

	// The learnt values can be given as arguments.
	given := string(must.Get(json.Marshal(e.(sdk.Resolver).Resolved()))(t))
	_, again := electSets(t, given, nil, others[:50])
	for i, v := range again {
		if v.Answer != verdicts[i].Answer || math.Abs(v.Confidence-verdicts[i].Confidence) > 1e-9 {
			t.Fatalf("row %d: %+v with the arguments %s, want %+v", i, v, given, verdicts[i])
		}
	}

	// The order of the rows makes no difference.
	slices.Reverse(rows)
	if _, reversed := electSets(t, `{}`, rows, others[:50]); reversed[7].Confidence != verdicts[7].Confidence {
		t.Errorf("confidence %v after rows in another order, and not %v", reversed[7].Confidence, verdicts[7].Confidence)
	}

	// If one voter is missing, the other decides.
	for i := range others {
		others[i].Samples = others[i].Samples[:1]
	}
	if f1, _, _, _ := figures(others, verdictsOf(t, e, others)); f1 < best-.02 {
		t.Errorf("F1 %.3f where the voter that guesses is missing", f1)
	}
}

// Rows without a label teach that a text may have none; such texts then get an empty answer. Without such rows no
// answer is empty.
func TestEmptySets(t *testing.T) {
	empty := func(rows []sdk.TrainingRow) {
		for i := range rows {
			if i%4 > 0 {
				continue
			}
			rows[i].Label = sdk.NoLabels
			for j := range rows[i].Samples[0].Answers {
				rows[i].Samples[0].Answers[j].Weight = .02 + .01*float64(j)
			}
		}
	}
	rows, others := setRows(400, 1), setRows(400, 2)
	empty(rows)
	empty(others)
	for _, config := range []string{`{}`, `{"precision": 0.9}`} {
		e, verdicts := electSets(t, config, rows, others)
		right, made := 0, 0
		for i, v := range verdicts {
			switch {
			case v.Answer == sdk.NoLabels && others[i].Label == sdk.NoLabels:
				if right++; v.Confidence < .5 || v.Agreement <= 0 {
					t.Errorf("%s: row %d: %+v", config, i, v)
				}
			case v.Answer == sdk.NoLabels && config == `{}`:
				made++
			}
		}
		if right < 95 || made > 15 {
			t.Errorf("%s: %d of 100 texts without labels have none, and %d of 300 others", config, right, made)
		}
		if none := verdictsOf(t, e, []sdk.TrainingRow{{}})[0]; none.Answer != "" || none.Reason == "" {
			t.Errorf("%s: %+v where nobody voted", config, none)
		}
		given := string(must.Get(json.Marshal(e.(sdk.Resolver).Resolved()))(t))
		if _, again := electSets(t, given, nil, others[:1]); config == `{}` && again[0].Answer != sdk.NoLabels {
			t.Errorf("%+v with the arguments %s", again[0], given)
		}
	}
	full := slices.DeleteFunc(slices.Clone(rows), func(r sdk.TrainingRow) bool { return r.Label == sdk.NoLabels })
	if _, verdicts := electSets(t, `{}`, full, others[:1]); sets.Labels.Split(verdicts[0].Answer) == nil || len(verdicts[0].Labels) != 1 {
		t.Errorf("%+v, where each row has a label", verdicts[0])
	}
}

// If several thresholds tie, the middle one is taken. A precision that it reaches changes nothing.
func TestThresholdOfSets(t *testing.T) {
	rows := setRows(100, 1)
	for i := range rows {
		for j, a := range rows[i].Samples[0].Answers {
			weight := .02
			if slices.Contains(sets.Labels.Split(rows[i].Label), a.Label) {
				weight = .98
			}
			rows[i].Samples[0].Answers[j].Weight = weight
		}
		rows[i].Samples = rows[i].Samples[:1]
	}
	for _, config := range []string{`{}`, `{"precision": 0.9}`} {
		e, _ := electSets(t, config, rows, nil)
		if at := e.(sdk.Resolver).Resolved()["calibration"].(map[string]float64)["threshold"]; at < .4 || at > .6 {
			t.Errorf("%s: the threshold is %v", config, at)
		}
	}
}

func TestUnlearntSets(t *testing.T) {
	item := []sdk.TrainingRow{{Samples: []sdk.Sample{
		{Voter: "linear", Answers: []sdk.Answer{{Label: "a", Weight: .95, Accepted: true}, {Label: "b", Weight: .9, Accepted: true}, {Label: "c", Weight: .01, Accepted: true}}},
		{Voter: "llm", Answers: []sdk.Answer{{Label: "b", Weight: 1, Accepted: true}, {Label: "a", Weight: 1, Accepted: true}}},
	}}}
	for _, stage := range []sdk.Stage{elect.Learned(), elect.Soft(), elect.First()} {
		e := must.Get(stage.Open(t.Context(), sets, []byte(`{}`)))(t).(sdk.Elector)
		if v := verdictsOf(t, e, item)[0]; v.Answer != "a; b" {
			t.Errorf("%s answers %+v", stage.Name, v)
		}
		if v := verdictsOf(t, e, []sdk.TrainingRow{{}})[0]; v.Answer != "" || v.Reason == "" {
			t.Errorf("%s answers %+v where nobody voted", stage.Name, v)
		}
	}
	for _, stage := range []sdk.Stage{elect.Majority(), elect.Weighted()} {
		if _, err := stage.Open(t.Context(), sets, []byte(`{}`)); err == nil {
			t.Errorf("%s takes sets", stage.Name)
		}
	}
	_, err := elect.Learned().Open(t.Context(), sets, []byte(`{"weights": {"a": 1}, "calibration": {"thresholds": 0.4}}`))
	if err == nil {
		t.Error("a name that the calibration of sets does not have is taken")
	}
}
