package elect_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
)

// Simulated models are right on a given share of the rows: they are the recorded models with some errors corrected,
// so that the remaining errors still coincide. One to nine of them join neighbours and prototype, whose weights were
// fitted on half of the rows. On the other half, an unmeasured model has little weight. So it helps less than in soft
// and majority, and harms less. With the models' answers to 40 of the fitted rows, the election is about as good as
// the best of soft, majority and the best voter, at any accuracy.
func TestModelsOfAnyAccuracy(t *testing.T) {
	labels, rows, models := recordedVotes(t)
	splits, accuracies, sizes := 20, []float64{.6, .75, .85, .92, .96}, []int{1, 2, 4, 9}
	if testing.Short() {
		splits, accuracies, sizes = 8, []float64{.85, .96}, []int{4}
	}
	soft, majority := open(t, elect.Soft(), ""), open(t, elect.Majority(), "")
	statistical := []string{"neighbours", "prototype"}
	for _, accuracy := range accuracies {
		for _, m := range sizes {
			gains := map[string][]float64{}
			figures := map[string]float64{}
			for split := range splits {
				random := rand.New(rand.NewPCG(uint64(split), uint64(m)))
				chosen := raised(random, rows, models, accuracy)
				set := slices.Clone(statistical)
				for _, i := range random.Perm(len(models))[:m] {
					set = append(set, models[i])
				}
				chosen = of(chosen, set...)
				random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
				a, b := chosen[:300], chosen[300:]
				reached := func(e sdk.Elector) float64 { return share(right(b, learnedElect(t, e, labels, b))) }
				best := 0.
				for _, v := range set {
					best = max(best, share(alone(b, v)))
				}
				peer := max(reached(soft), reached(majority))
				for name, rows := range map[string][]sdk.TrainingRow{
					"unseen": of(a, statistical...), "calibrated": append(slices.Clone(a[:40]), of(a[40:], statistical...)...), "tuned": a,
				} {
					got := reached(fitted(t, rows))
					figures[name] += got / float64(splits)
					gains[name+" over the best voter"] = append(gains[name+" over the best voter"], got-best)
					gains[name+" over soft or majority"] = append(gains[name+" over soft or majority"], got-peer)
				}
				figures["best voter"] += best / float64(splits)
				figures["soft or majority"] += peer / float64(splits)
			}
			name := fmt.Sprintf("%d models right on %.0f %%", m, 100*accuracy)
			t.Logf("%s: unseen %.1f, calibrated %.1f, tuned %.1f; the best voter %.1f, soft or majority %.1f", name,
				100*figures["unseen"], 100*figures["calibrated"], 100*figures["tuned"], 100*figures["best voter"], 100*figures["soft or majority"])
			for what, least := range map[string]float64{
				"calibrated over the best voter": -.01, "calibrated over soft or majority": -.015, "tuned over the best voter": 0, "tuned over soft or majority": -.005,
				"unseen over soft or majority": -.07,
			} {
				mean, se := moments(gains[what])
				if mean+1.645*se < least {
					t.Errorf("%s: %s %.2f points, standard error %.2f", name, what, 100*mean, 100*se)
				}
			}
		}
	}
}

// An unmeasured model has little weight. This is tested with models that are right on none to all of the rows, and
// with voters that have learned from few or many rows with few or many labels. Such a model does no harm on average;
// one that is never right costs few points, and good ones still add most of what they can.
func TestUnmeasuredModels(t *testing.T) {
	labels, rows, models := recordedVotes(t)
	statistical := []string{"neighbours", "prototype"}
	gains := map[float64][]float64{}
	var pooled []float64
	for _, set := range []struct{ labels, rows int }{{3, 4}, {6, 10}, {12, 30}, {58, 10}, {58, 300}} {
		for split := range 5 {
			random := rand.New(rand.NewPCG(uint64(split), uint64(set.labels*1000+set.rows)))
			some := slices.Clone(labels)
			random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			some = some[:set.labels]
			chosen := ofLabels(rows, some)
			random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
			e := fitted(t, of(chosen[:set.rows], statistical...))
			items := chosen[set.rows:]
			for _, accuracy := range []float64{0, .2, .4, .6, .8, 1} {
				model := models[random.IntN(len(models))]
				with := of(spoiled(random, raised(random, items, []string{model}, accuracy), model, some, accuracy), append(slices.Clone(statistical), model)...)
				free := of(with, statistical...)
				by, _ := better(right(with, learnedElect(t, e, some, with)), right(free, learnedElect(t, e, some, free)))
				gains[accuracy], pooled = append(gains[accuracy], by), append(pooled, by)
			}
		}
	}
	low := func(all []float64) float64 { mean, se := moments(all); return mean - 1.96*se }
	for accuracy, all := range gains {
		mean, _ := moments(all)
		t.Logf("right on %.0f %%: %+.1f points, at least %+.1f, worst %+.1f", 100*accuracy, 100*mean, 100*low(all), 100*slices.Min(all))
	}
	never, _ := moments(gains[0])
	always, _ := moments(gains[1])
	if low(pooled) < -.01 || never < -.05 || slices.Min(gains[0]) < -.3 || always < .08 {
		t.Errorf("pooled at least %+.3f, a model that is never right %+.3f, one that always is %+.3f", low(pooled), never, always)
	}
}

// ofLabels keeps only the rows and answers of some labels.
func ofLabels(rows []sdk.TrainingRow, labels []string) (some []sdk.TrainingRow) {
	for _, r := range rows {
		if !slices.Contains(labels, r.Label) {
			continue
		}
		r.Samples = slices.Clone(r.Samples)
		for i, s := range r.Samples {
			r.Samples[i].Answers = slices.DeleteFunc(slices.Clone(s.Answers), func(a sdk.Answer) bool { return !slices.Contains(labels, a.Label) })
		}
		some = append(some, r)
	}
	return some
}

// spoiled replaces right answers of a model at random, until the model is right on at most a share of the rows.
func spoiled(random *rand.Rand, rows []sdk.TrainingRow, model string, labels []string, accuracy float64) []sdk.TrainingRow {
	rows = slices.Clone(rows)
	left := int(accuracy * float64(len(rows)))
	for _, i := range random.Perm(len(rows)) {
		at := slices.IndexFunc(rows[i].Samples, func(s sdk.Sample) bool { return s.Voter == model })
		if at < 0 || !alone(rows[i:i+1], model)[0] {
			continue
		}
		if left--; left >= 0 {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == rows[i].Label })
		rows[i].Samples = slices.Clone(rows[i].Samples)
		rows[i].Samples[at] = sdk.Sample{Voter: model, Answers: []sdk.Answer{{Label: others[random.IntN(len(others))], Weight: 1, Accepted: true}}}
	}
	return rows
}

// raised corrects errors of models at random, until they are right on a share of the rows.
func raised(random *rand.Rand, rows []sdk.TrainingRow, models []string, accuracy float64) []sdk.TrainingRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Samples = slices.Clone(rows[i].Samples)
	}
	for _, model := range models {
		var wrong []int
		for i, right := range alone(rows, model) {
			if !right {
				wrong = append(wrong, i)
			}
		}
		random.Shuffle(len(wrong), func(i, j int) { wrong[i], wrong[j] = wrong[j], wrong[i] })
		for _, i := range wrong[:max(0, int(accuracy*float64(len(rows)))-len(rows)+len(wrong))] {
			at := slices.IndexFunc(rows[i].Samples, func(s sdk.Sample) bool { return s.Voter == model })
			answered := sdk.Sample{Voter: model, Answers: []sdk.Answer{{Label: rows[i].Label, Weight: 1, Accepted: true}}}
			if at < 0 {
				rows[i].Samples = append(rows[i].Samples, answered)
			} else {
				rows[i].Samples[at] = answered
			}
		}
	}
	return rows
}

func moments(all []float64) (mean, standardError float64) {
	sum, squares := 0., 0.
	for _, x := range all {
		sum, squares = sum+x, squares+x*x
	}
	n := float64(len(all))
	mean = sum / n
	return mean, math.Sqrt(max(squares/n-mean*mean, 0) / n)
}
