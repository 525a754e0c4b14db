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

var tree = sdk.Setup{Labels: sdk.LabelForm{Levels: "/"}}

// treeRows makes rows of 3 x 3 x 2 labels. A voter confuses labels of the same parent more than others.
func treeRows(n int, seed uint64) []sdk.TrainingRow {
	random := rand.New(rand.NewPCG(seed, 1))
	rows := make([]sdk.TrainingRow, n)
	for i := range rows {
		a, b, c := random.IntN(3), random.IntN(3), random.IntN(2)
		s, sum := sdk.Sample{Voter: "near"}, 0.
		for x := range 3 {
			for y := range 3 {
				for z := range 2 {
					odds := random.NormFloat64()
					for _, same := range []bool{x == a, x == a && y == b, x == a && y == b && z == c} {
						if same {
							odds += 1.1
						}
					}
					w := math.Exp(odds)
					sum += w
					s.Answers = append(s.Answers, sdk.Answer{Label: fmt.Sprint(x, "/", y, "/", z), Weight: w, Accepted: true})
				}
			}
		}
		for j := range s.Answers {
			s.Answers[j].Weight /= sum
		}
		rows[i] = sdk.TrainingRow{ID: fmt.Sprint(seed, " ", i), Label: fmt.Sprint(a, "/", b, "/", c), Samples: []sdk.Sample{s}}
	}
	return rows
}

func electTree(t *testing.T, setup sdk.Setup, config string, fit, others []sdk.TrainingRow) (sdk.Elector, []sdk.Verdict) {
	t.Helper()
	setup.StateDir = t.TempDir()
	stage := must.Get(elect.Learned().Open(t.Context(), setup, []byte(config)))(t)
	if fit != nil {
		must.Do(t, stage.(sdk.Fitter).Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(fit, nil) }))
	}
	b := sdk.Batch{Labels: make([]string, 18)}
	for _, r := range others {
		b.Items = append(b.Items, sdk.Item{ID: r.ID, Samples: r.Samples})
	}
	return stage.(sdk.Elector), must.Get(stage.(sdk.Elector).Elect(t.Context(), b))(t)
}

func TestLearnedTree(t *testing.T) {
	rows, others := treeRows(800, 1), treeRows(3000, 2)
	_, flat := electTree(t, sdk.Setup{}, `{}`, rows, others)
	e, leaves := electTree(t, tree, `{}`, rows, others)
	for i, v := range leaves {
		if v.Answer != flat[i].Answer || v.Confidence != flat[i].Confidence || v.Labels[2].Confidence != v.Confidence || flat[i].Labels != nil {
			t.Fatalf("row %d: %+v, and without levels %+v", i, v, flat[i])
		}
	}
	for _, at := range []float64{.6, .8, .95} {
		_, verdicts := electTree(t, tree, fmt.Sprintf(`{"answer_at": %v}`, at), rows, others)
		right, depth, below, sure := 0., 0, 0, 0
		for i, v := range verdicts {
			if tree.Labels.Holds(v.Answer, others[i].Label) {
				right += 1 / float64(len(verdicts))
			}
			path := tree.Labels.Path(v.Answer)
			depth += len(path)
			if v.Confidence < at {
				if below++; len(path) > 1 {
					t.Fatalf("row %d: %+v goes deeper than the first level", i, v)
				}
			} else {
				sure++
			}
			for j, l := range v.Labels {
				if j > 0 && l.Confidence > v.Labels[j-1].Confidence {
					t.Fatalf("row %d: %+v grow surer on the way down", i, v.Labels)
				}
			}
			if at := slices.IndexFunc(v.Labels, func(l sdk.LabelConfidence) bool { return l.Label == v.Answer }); at != len(path)-1 || v.Labels[at].Confidence != v.Confidence {
				t.Fatalf("row %d: %+v", i, v)
			}
		}
		certain := 0.
		for i, v := range verdicts {
			if v.Confidence >= at && tree.Labels.Holds(v.Answer, others[i].Label) {
				certain += 1 / float64(sure)
			}
		}
		if certain < at-.02 {
			t.Errorf("answer_at %v: %.3f of the %d nodes that are so sure are right", at, certain, sure)
		}
		t.Logf("answer_at %v: %.3f right, %.2f levels, %d below", at, right, float64(depth)/float64(len(verdicts)), below)
	}
	// The learnt values can be given as arguments.
	given := must.Get(json.Marshal(e.(sdk.Resolver).Resolved()))(t)
	_, again := electTree(t, tree, string(given), nil, others[:50])
	for i, v := range again {
		if want := leaves[i]; v.Answer != want.Answer || len(v.Labels) != 3 || math.Abs(v.Labels[0].Confidence-want.Labels[0].Confidence) > 1e-9 {
			t.Fatalf("row %d: %+v with the arguments %s, want %+v", i, v, given, want)
		}
	}
}

// A label may have other labels below it.
func TestInnerLabel(t *testing.T) {
	item := sdk.TrainingRow{Samples: []sdk.Sample{{Voter: "near", Answers: []sdk.Answer{
		{Label: "a", Weight: .5, Accepted: true}, {Label: "a/x", Weight: .3, Accepted: true}, {Label: "b/y", Weight: .2, Accepted: true},
	}}}}
	_, verdicts := electTree(t, tree, `{"weights": {"near": 5}, "answer_at": 0.5}`, nil, []sdk.TrainingRow{item})
	if v := verdicts[0]; v.Answer != "a" || len(v.Labels) != 1 {
		t.Errorf("got %+v", v)
	}
}
