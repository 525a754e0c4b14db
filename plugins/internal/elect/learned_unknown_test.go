package elect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// withDistances returns rows of generate with the votes of good and middling. Some rows belong to no label: they are
// farther away, by one standard deviation for good and two for middling. The voters vote for them as for a label that
// does not exist.
func withDistances(seed uint64, known, unknown int) (labels []string, rows []sdk.TrainingRow) {
	labels, rows = generate(seed, known+unknown)
	random := rand.New(rand.NewPCG(seed, 2))
	rows = of(rows, "good", "middling")
	for i := range rows {
		by := 0.
		if i >= known {
			by = 1
			for j := range rows[i].Samples {
				answers := slices.DeleteFunc(slices.Clone(rows[i].Samples[j].Answers), func(a sdk.Answer) bool { return a.Label == rows[i].Label })
				rows[i].Samples[j].Answers = answers
			}
			rows[i].Label = ""
		}
		for j := range rows[i].Samples {
			spread := .05 * float64(1+j)
			rows[i].Samples[j].Distance = min(max(.4+spread*(float64(1+j)*by+random.NormFloat64()), .01), 1)
		}
	}
	return labels, rows
}

// found returns the share of pairs of an unknown and a known row in which the unknown row has the greater value.
func found(rows []sdk.TrainingRow, verdicts []sdk.Verdict, value func(sdk.Verdict) float64) float64 {
	higher, pairs := 0., 0.
	for i, out := range rows {
		for j, in := range rows {
			if out.Label == "" && in.Label != "" {
				if pairs++; value(verdicts[i]) > value(verdicts[j]) {
					higher++
				}
			}
		}
	}
	return higher / pairs
}

// mean returns the mean of a value over the known or the unknown rows.
func mean(rows []sdk.TrainingRow, verdicts []sdk.Verdict, unknown bool, value func(i int, v sdk.Verdict) float64) float64 {
	sum, n := 0., 0.
	for i, r := range rows {
		if (r.Label == "") == unknown {
			sum, n = sum+value(i, verdicts[i]), n+1
		}
	}
	return sum / n
}

func isUnknown(v sdk.Verdict) float64 { return v.Unknown }
func isUnsure(v sdk.Verdict) float64  { return -v.Confidence }

// TestUnknown: without rows that belong to no label, the prior finds such texts better than the confidence alone, and
// the confidence stays calibrated on the others. With such rows, they are found better still, and as often as they
// occur.
func TestUnknown(t *testing.T) {
	labels, learnt := withDistances(1, 800, 0)
	_, more := withDistances(2, 0, 200)
	_, items := withDistances(3, 1600, 400)
	bare := slices.Clone(items)
	for i := range bare {
		bare[i].Samples = slices.Clone(bare[i].Samples)
		for j := range bare[i].Samples {
			bare[i].Samples[j].Distance = 0
		}
	}
	prior, taught := fitted(t, learnt), fitted(t, append(slices.Clone(learnt), more...))
	before, untaught, after := learnedElect(t, prior, labels, bare), learnedElect(t, prior, labels, items), learnedElect(t, taught, labels, items)
	for i, v := range untaught {
		if before[i].Unknown != 0 || v.Unknown <= 0 || v.Answer != before[i].Answer || v.Answer != after[i].Answer {
			t.Fatalf("item %d: %+v without distances, %+v with them, %+v taught", i, before[i], v, after[i])
		}
	}
	base := found(items, before, isUnsure)
	byPrior, byConfidence, byTaught := found(items, untaught, isUnknown), found(items, untaught, isUnsure), found(items, after, isUnknown)
	t.Logf("AUROC of the confidence alone %.3f, by the prior %.3f, of its confidence %.3f, taught %.3f", base, byPrior, byConfidence, byTaught)
	if byPrior < base+.05 || byConfidence < base+.02 || byTaught < byPrior {
		t.Error("unknown texts are not found")
	}
	for name, verdicts := range map[string][]sdk.Verdict{"untaught": untaught, "taught": after} {
		accuracy := mean(items, verdicts, false, func(i int, v sdk.Verdict) float64 {
			if v.Answer == items[i].Label {
				return 1
			}
			return 0
		})
		if sure := mean(items, verdicts, false, func(_ int, v sdk.Verdict) float64 { return v.Confidence }); math.Abs(sure-accuracy) > .03 {
			t.Errorf("%s: confidence %.3f where %.3f are right", name, sure, accuracy)
		}
	}
	unknown := func(_ int, v sdk.Verdict) float64 { return v.Unknown }
	if all := .8*mean(items, after, false, unknown) + .2*mean(items, after, true, unknown); math.Abs(all-.2) > .03 {
		t.Errorf("a fifth is unknown, and %.3f is estimated", all)
	}
}

// TestUnknownWithFewVotes: a model that voted on few of the rows does not weaken the others' signs of unknown texts.
func TestUnknownWithFewVotes(t *testing.T) {
	labels, rows := withDistances(6, 600, 0)
	_, items := withDistances(7, 800, 200)
	_, model := generate(6, 15)
	some := slices.Clone(rows)
	for i, r := range of(model, "model") {
		some[i].Samples = append(slices.Clone(some[i].Samples), r.Samples...)
	}
	want := found(items, learnedElect(t, fitted(t, rows), labels, items), isUnknown)
	if got := found(items, learnedElect(t, fitted(t, some), labels, items), isUnknown); math.Abs(got-want) > .01 {
		t.Errorf("AUROC %.3f with a model's votes on 15 of 600 rows, %.3f without", got, want)
	}
}

// TestUnknownOfFewRows: from a handful of rows on, texts farther away than the rows are unknown, and no answer to
// them is sure. At most one labelled row in 20 is unknown, or the farthest of fewer. The arguments have the same
// effect.
func TestUnknownOfFewRows(t *testing.T) {
	for _, n := range []int{6, 12, 40, 150} {
		labels, rows := withDistances(8, n, 0)
		_, items := withDistances(9, 400, 0)
		far := slices.Clone(items[:50])
		for i := range far {
			far[i].Samples = slices.Clone(far[i].Samples)
			for j := range far[i].Samples {
				far[i].Samples[j].Distance = 1
			}
		}
		first := fitted(t, rows)
		share := func(rows []sdk.TrainingRow) float64 {
			unknown := 0.
			for i, v := range learnedElect(t, first, labels, rows) {
				if v.Unknown > .5 {
					unknown += 1 / float64(len(rows))
				}
				if v.Confidence > 1-v.Unknown {
					t.Fatalf("%d rows: item %d: %+v", n, i, v)
				}
			}
			return unknown
		}
		if found, alarms := share(far), share(items); found < .95 || alarms > .05+3/float64(n) {
			t.Errorf("%d rows: %.2f of what is far and %.2f of the others are unknown", n, found, alarms)
		}
		given := string(must.Get(json.Marshal(first.(sdk.Resolver).Resolved()))(t))
		for i, v := range learnedElect(t, open(t, elect.Learned(), given), labels, far[:5]) {
			if want := learnedElect(t, first, labels, far[i:i+1])[0]; !reflect.DeepEqual(v, want) {
				t.Fatalf("%d rows: %+v with the arguments %s, want %+v", n, v, given, want)
			}
		}
	}
}

// TestUnknownArgument: the arguments have the same effect as the learned model.
func TestUnknownArgument(t *testing.T) {
	labels, rows := withDistances(4, 300, 60)
	first := fitted(t, rows)
	raw, err := json.Marshal(first.(sdk.Resolver).Resolved())
	must.Do(t, err)
	second := open(t, elect.Learned(), string(raw))
	for i, v := range learnedElect(t, second, labels, rows) {
		if want := learnedElect(t, first, labels, rows[i:i+1])[0]; !reflect.DeepEqual(v, want) {
			t.Fatalf("row %d: %+v, want %+v", i, v, want)
		}
	}
}

// TestNotEstimated: without one of the distances, an item's confidence is unchanged; so is every confidence without
// distances.
func TestNotEstimated(t *testing.T) {
	labels, rows := withDistances(5, 300, 0)
	e := fitted(t, rows)
	item := rows[:1:1]
	item[0].Samples = slices.Clone(item[0].Samples)
	item[0].Samples[1].Distance = 0
	if v := learnedElect(t, e, labels, item)[0]; v.Unknown != 0 || v.Confidence == 0 {
		t.Errorf("%+v", v)
	}
	none := []sdk.TrainingRow{{Samples: []sdk.Sample{
		{Voter: "good", Distance: .4, Answers: []sdk.Answer{{Weight: 1, Accepted: true}}}, {Voter: "middling", Distance: .4, Answers: []sdk.Answer{{Weight: 1, Accepted: true}}},
	}}}
	if v := learnedElect(t, e, labels, none)[0]; v.Answer != "" || v.Unknown != v.Confidence || v.Unknown < .5 {
		t.Errorf("the voters say that no label fits: %+v", v)
	}
	for _, fewRows := range [][]sdk.TrainingRow{rows[:4], nil} {
		if v := learnedElect(t, fitted(t, fewRows), labels, rows[20:21])[0]; v.Unknown != 0 {
			t.Errorf("after %d rows %+v", len(fewRows), v)
		}
	}
}

func TestUnknownArguments(t *testing.T) {
	for config, want := range map[string]string{
		`{"unknown": {"offset": 1}}`:                                                              "give weights, too",
		`{"weights": {"knn": 1}, "unknown": {"offset": 1}}`:                                       `give "distance of NAME"`,
		`{"weights": {"knn": 1}, "unknown": {"distance of knn": 1, "knn": 2}}`:                    `there is no "knn"`,
		`{"weights": {"knn": 1}, "unknown": {"distance of knn": 1, "slope of confidence": -0.5}}`: "below 0",
	} {
		_, err := elect.Learned().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "unknown" || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}
