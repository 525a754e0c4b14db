package elect_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
)

// generated are the voters of generate, in the order of its samples.
var generated = []string{"good", "middling", "copy", "model", "weak", "adversary", "specialist", "mute"}

// generate makes rows with the votes of voters whose properties are known. Rows differ in difficulty,
// so that voters err together.
//
//   - good and middling give distributions, and share some of their errors;
//   - copy repeats middling;
//   - model answers 1 to 6 times, often off the list of labels;
//   - weak answers once and is right on 4 of 10;
//   - adversary knows the label and nearly always names another;
//   - specialist is nearly always right, and abstains on most rows;
//   - mute has no acceptable answer.
func generate(seed uint64, n int) (labels []string, rows []sdk.TrainingRow) {
	const k = 12
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range k {
		labels = append(labels, fmt.Sprintf("label %02d", i))
	}
	other := func(than int) int { return (than + 1 + random.IntN(k-1)) % k }
	answer := func(label int) []sdk.Answer { return []sdk.Answer{{Label: labels[label], Weight: 1, Accepted: true}} }
	for i := range n {
		truth, hard := random.IntN(k), random.Float64()
		common := make([]float64, k)
		for j := range common {
			common[j] = random.NormFloat64()
		}
		distribution := func(know, shared float64) []sdk.Answer {
			scores := make([]float64, k)
			for j := range scores {
				scores[j] = 1.4 * (shared*common[j] + math.Sqrt(1-shared*shared)*random.NormFloat64())
			}
			scores[truth] += know * (1.6 - hard)
			return ballotOf(labels, scores)
		}
		vote := func(accuracy float64) []sdk.Answer {
			if random.Float64() < accuracy {
				return answer(truth)
			}
			return answer(other(truth))
		}
		r := sdk.TrainingRow{ID: fmt.Sprintf("row %05d", i), Label: labels[truth]}
		add := func(voter string, answers []sdk.Answer) {
			r.Samples = append(r.Samples, sdk.Sample{Voter: voter, Answers: answers})
		}
		add("good", distribution(4, .5))
		middling := distribution(3, .5)
		add("middling", middling)
		add("copy", slices.Clone(middling))
		means := truth // the model's belief, which may be wrong
		if random.Float64() < .2+.3*hard {
			means = other(truth)
		}
		for range 1 + i%6 {
			switch x := random.Float64(); {
			case x < .1:
				add("model", []sdk.Answer{{Label: "something else", Weight: 1}})
			case x < .3:
				add("model", answer(other(means)))
			default:
				add("model", answer(means))
			}
		}
		add("weak", vote(.4))
		add("adversary", vote(.02))
		if random.Float64() < .3 {
			add("specialist", vote(.95))
		}
		add("mute", []sdk.Answer{{Label: "I cannot say", Weight: 1}})
		rows = append(rows, r)
	}
	return labels, rows
}

// ballotOf returns the softmax of scores, best first.
func ballotOf(labels []string, scores []float64) []sdk.Answer {
	answers, sum := make([]sdk.Answer, len(labels)), 0.0
	for i, s := range scores {
		answers[i] = sdk.Answer{Label: labels[i], Weight: math.Exp(s), Accepted: true}
		sum += answers[i].Weight
	}
	for i := range answers {
		answers[i].Weight /= sum
	}
	slices.SortFunc(answers, func(a, b sdk.Answer) int { return cmp.Compare(b.Weight, a.Weight) })
	return answers[:6]
}

// For every subset of generated voters, the voter that is best on the fitted rows is not better than the election on
// other rows. Voters worse than chance are left out: the election believes none of them.
func TestNeverWorse(t *testing.T) {
	labels, rows := generate(3, 4000)
	c := newCompared(labels, rows[:1000], rows[1000:], generated)
	for i, set := range subsets(generated) {
		if !slices.ContainsFunc(set, func(v string) bool { return v != "adversary" && v != "mute" }) {
			continue
		}
		if !testing.Short() || i%8 == 0 {
			c.add(t, set)
		}
	}
	c.report(t)
}

// Confidence is calibrated: its calibration error is what perfectly calibrated confidences have by chance. As
// probabilities, confidences are better than soft's shares.
func TestCalibrated(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		labels, rows := generate(10+seed, 4000)
		learnt, rows := rows[:2000], rows[2000:]
		verdicts := learnedElect(t, fitted(t, learnt), labels, rows)
		confidences, ok := make([]float64, len(rows)), right(rows, verdicts)
		for i, v := range verdicts {
			confidences[i] = v.Confidence
		}
		chance := byChance(seed, confidences)
		got := calibrationError(confidences, ok)
		nll, brier := scored(confidences, ok)
		shares, softly := learnedElect(t, open(t, elect.Soft(), ""), labels, rows), make([]float64, len(rows))
		for i, v := range shares {
			softly[i] = v.Agreement
		}
		softOK := right(rows, shares)
		softNLL, softBrier := scored(softly, softOK)
		t.Logf("ECE %.4f, by chance up to %.4f, soft %.4f; NLL %.3f, soft %.3f; Brier %.3f, soft %.3f; right %.3f, soft %.3f",
			got, chance, calibrationError(softly, softOK), nll, softNLL, brier, softBrier, share(ok), share(softOK))
		if got > chance {
			t.Errorf("the calibration error is %.4f, by chance it is below %.4f", got, chance)
		}
		if nll > softNLL || brier > softBrier {
			t.Errorf("NLL %.3f and Brier score %.3f, those of soft are %.3f and %.3f", nll, brier, softNLL, softBrier)
		}
	}
}

// byChance returns the 95 % quantile of the calibration error of perfectly calibrated confidences.
func byChance(seed uint64, confidences []float64) float64 {
	random := rand.New(rand.NewPCG(seed, 2))
	var chance []float64
	for range 200 {
		drawn := make([]bool, len(confidences))
		for i, c := range confidences {
			drawn[i] = random.Float64() < c
		}
		chance = append(chance, calibrationError(confidences, drawn))
	}
	slices.Sort(chance)
	return chance[189]
}

// Confidence is also calibrated where voters are missing: because they failed, were not asked, or are in a cascade
// that asks them only about doubtful items. A fit on 2,000 rows is itself off by chance, so 14 to 18 of 20 are within
// what chance explains.
func TestCalibratedWithoutVoters(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	within := map[string]int{}
	for seed := range uint64(seeds) {
		labels, rows := generate(30+seed, 4000)
		rows = of(rows, "good", "middling", "model", "weak", "specialist")
		e, rows := fitted(t, rows[:2000]), rows[2000:]
		statistical := of(rows, "good", "middling")
		cascade := slices.Clone(rows)
		for i, v := range learnedElect(t, e, labels, statistical) {
			if v.Confidence > .8 {
				cascade[i] = statistical[i]
			}
		}
		for name, rows := range map[string][]sdk.TrainingRow{
			"all": rows, "statistical": statistical, "cascade": cascade,
			"without model": of(rows, "good", "middling", "weak", "specialist"), "without good": of(rows, "middling", "model", "weak", "specialist"),
		} {
			verdicts := learnedElect(t, e, labels, rows)
			confidences := make([]float64, len(rows))
			for i, v := range verdicts {
				confidences[i] = v.Confidence
			}
			if calibrationError(confidences, right(rows, verdicts)) <= byChance(seed, confidences) {
				within[name]++
			}
		}
	}
	t.Logf("of %d: %v", seeds, within)
	for name, n := range within {
		if n < seeds/2 {
			t.Errorf("%s: the calibration error is what chance explains for %d of %d", name, n, seeds)
		}
	}
}

// calibrationError returns the expected calibration error with 15 bins of equal width (Guo et al.,
// "On calibration of modern neural networks", 2017).
func calibrationError(confidences []float64, ok []bool) (sum float64) {
	const bins = 15
	var gap [bins]float64
	for i, c := range confidences {
		bin := min(int(c*bins), bins-1)
		gap[bin] += c
		if ok[i] {
			gap[bin]--
		}
	}
	for _, g := range gap {
		sum += math.Abs(g) / float64(len(ok))
	}
	return sum
}

// scored returns the mean negative log-likelihood and the Brier score of confidences, as
// probabilities that the answers are right.
func scored(confidences []float64, ok []bool) (nll, brier float64) {
	for i, c := range confidences {
		if !ok[i] {
			c = 1 - c
		}
		nll -= math.Log(max(c, 1e-3)) / float64(len(ok))
		brier += (1 - c) * (1 - c) / float64(len(ok))
	}
	return nll, brier
}
