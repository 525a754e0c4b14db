package elect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// This file handles answers that are sets of labels (multi-label). Each label is decided by itself. The log-odds that
// a text has the label are a sum over the voters, of weight times the log-odds of the voter's share, plus an offset.
// The share is the mean weight that the voter's samples give the label, at most 1. Its log-odds are divided by the
// greatest possible ones, so that a weight is what a full vote adds. A missing voter gets the mean of the others. All
// labels have the same weights, so labels with few rows profit from what other labels show about the voters.
//
// Weights and offset maximise the likelihood, on labelled rows, of which labels with votes are right. A ridge penalty
// pulls each number towards its prior: 3/2 times the squared distance. The answer has the labels whose probability is
// at least a threshold. It always has the likeliest label if every learned row has a label. The threshold is the one
// with the best F1 over all labels of rows from which the weights were not learned (five folds). It is below one half
// where labels are missed more often than made up ("Optimal thresholding of classifiers to maximize F1 measure",
// Lipton et al. 2014). If several thresholds tie, the middle of the longest run of them is taken.
//
// The argument precision asks for a higher threshold: the smallest one with which the share of right labels in the
// answers to those rows reaches the precision. The share is the lower end of the 95 % interval (Wilson). Then the
// likeliest label has to reach the threshold, too. If no label does, there is no answer; or the answer is that no
// label fits, if rows without labels were learned.
//
// The confidence is the probability that the whole set is right. It is estimated by the product of the labels'
// probabilities, calibrated on the rows of the folds as in the other elections.

// sets is the model of an election that answers with sets.
type sets struct {
	Weights     map[string]float64 `json:"weights"`
	Offset      float64            `json:"offset"`
	Threshold   float64            `json:"threshold"`
	Calibration calibration        `json:"calibration"`
	Empty       bool               `json:"empty,omitempty"` // an answer may be empty, because rows without a label were learned

	voters  []string // sorted
	weights []float64
	strict  bool // the threshold applies to the likeliest label, too
}

const (
	half       = 0.5  // the threshold before learning
	leastShare = 1e-3 // a smaller share counts as this much
)

// odds returns the log-odds of a share, scaled to the range from -1 to 1.
func odds(share float64) float64 {
	share = min(max(share, leastShare), 1-leastShare)
	return math.Log(share/(1-share)) / math.Log((1-leastShare)/leastShare)
}

// unlearnt is the model before learning.
var unlearnt = &sets{Threshold: half, Calibration: uncalibrated}

// prepare orders the voters.
func (s *sets) prepare() *sets {
	s.voters, s.weights = slices.Sorted(maps.Keys(s.Weights)), nil
	for _, name := range s.voters {
		s.weights = append(s.weights, s.Weights[name])
	}
	return s
}

// asked returns voters and their weights: the voters that s knows, and other voters with votes.
func (s *sets) asked(r *reader) (voters []string, weights []float64) {
	voters, weights = s.voters, s.weights
	var others []string
	for i, name := range r.voters {
		if _, known := slices.BinarySearch(voters, name); !known && r.cast[i].samples > 0 {
			others = append(others, name)
		}
	}
	each, sum := prior(len(others)), 0.0
	for _, w := range weights {
		sum += w
	}
	if len(weights) > 0 {
		each = min(each, sum/float64(len(weights))) // at most the mean of the learned weights
	}
	for _, name := range others {
		voters, weights = append(slices.Clip(voters), name), append(slices.Clip(weights), each)
	}
	return voters, weights
}

// inputs returns, for each label with votes, its log-odds by voter, and 1 for the offset. A missing voter has the
// mean of the others. Names are the voters of the casts.
func inputs(labels int, casts []cast, names, voters []string) [][]float64 {
	all := make([][]float64, labels)
	for label := range all {
		x := make([]float64, len(voters)+1)
		sum, n := 0.0, 0.0
		for i, name := range voters {
			x[i] = math.NaN()
			at := slices.Index(names[:len(casts)], name)
			if at < 0 || casts[at].samples == 0 {
				continue
			}
			share := 0.0
			if c := casts[at]; label < len(c.shares) {
				share = c.shares[label]
			}
			x[i] = odds(share)
			sum, n = sum+x[i], n+1
		}
		for i := range x {
			if math.IsNaN(x[i]) {
				x[i] = sum / max(n, 1)
			}
		}
		x[len(voters)] = 1
		all[label] = x
	}
	return all
}

// likely is a label with its probability.
type likely struct {
	sdk.LabelConfidence
	right bool // false if not known
}

// decide returns the labels with their probabilities, the likeliest first.
func (s *sets) decide(labels []string, inputs [][]float64, weights []float64) []likely {
	weights = append(slices.Clip(weights), s.Offset)
	all := make([]likely, 0, len(labels))
	for label, x := range inputs {
		score := 0.0
		for i, w := range weights {
			score += w * x[i]
		}
		if labels[label] != "" {
			all = append(all, likely{LabelConfidence: sdk.LabelConfidence{Label: labels[label], Confidence: sigmoid(score)}})
		}
	}
	slices.SortStableFunc(all, func(a, b likely) int { return cmp.Compare(b.Confidence, a.Confidence) })
	return all
}

// answered returns how many of the labels belong to the answer, from the first on.
func (s *sets) answered(all []likely) int {
	n := 0
	for n < len(all) && (n == 0 && !s.strict && !s.Empty || all[n].Confidence >= s.Threshold) {
		n++
	}
	return n
}

// pointOf returns the log-odds that the first n labels are the right answer, and whether they are.
func pointOf(all []likely, n, expected int) point {
	sum, found := 0.0, 0
	for i, l := range all {
		p := l.Confidence
		if i >= n {
			p = 1 - p
		} else if l.right {
			found++
		}
		sum += math.Log(max(p, math.SmallestNonzeroFloat64))
	}
	return point{logOdds(math.Exp(sum)), found == n && found == expected}
}

// elect decides on one item.
func (s *sets) elect(r *reader, samples []sdk.Sample, shown int) sdk.Verdict {
	r.forget()
	r.read(samples, nil)
	voters, weights := s.asked(r)
	all := s.decide(r.labels, inputs(len(r.labels), r.cast, r.voters, voters), weights)
	n := s.answered(all)
	none := n == 0 && s.Empty && slices.ContainsFunc(r.cast, func(c cast) bool { return c.samples > 0 })
	switch {
	case n > 0 || none:
	case len(all) > 0:
		return sdk.Verdict{Reason: "no label is as sure as the precision asks for"}
	case slices.ContainsFunc(r.labels, func(l string) bool { return l == "" }): // a voter says that no label fits
		return ballot.VerdictSet(ballot.MeanSet(samples, nil), half)
	default:
		return ballot.Weighed(nil, samples)
	}
	var v sdk.Verdict
	labels := []string{}
	for i, l := range all[:max(n, min(shown, len(all)))] {
		if i < n {
			labels = append(labels, l.Label)
		}
		v.Labels = append(v.Labels, l.LabelConfidence)
	}
	others := 0.0
	for _, a := range ballot.MeanSet(samples, nil) {
		switch {
		case slices.Contains(labels, a.Label):
			v.Agreement += min(a.Weight, 1) / float64(n)
		case none && a.Label != "":
			others = max(others, a.Weight)
		}
	}
	if none {
		v.Agreement = 1 - min(others, 1)
	}
	v.Answer, v.Confidence = sdk.JoinLabels(labels), s.Calibration.confidence(sigmoid(pointOf(all, n, 0).odds))
	return v
}

// setRow is a row to learn from.
type setRow struct {
	id     string
	labels []string // labels with votes
	casts  []cast
	set    []string // the right labels
	inputs [][]float64
}

// learnSets fits the election to rows, which are sorted by id. Names are the voters of their casts.
func learnSets(ctx context.Context, rows []setRow, names []string, precision float64) (*sets, error) {
	s := &sets{Weights: map[string]float64{}, Threshold: half, Calibration: uncalibrated, strict: precision > 0}
	voters := slices.Sorted(slices.Values(names))
	for i, r := range rows {
		rows[i].inputs = inputs(len(r.labels), r.casts, names, voters)
	}
	fit := func(keep func(int) bool) []float64 {
		weights := make([]float64, len(voters)+1)
		for i := range voters {
			weights[i] = prior(1) / float64(len(voters))
		}
		var right, wrong [][]float64
		for i, r := range rows {
			if !keep(i) {
				continue
			}
			for label, x := range r.inputs {
				if slices.Contains(r.set, r.labels[label]) {
					right = append(right, x)
				} else {
					wrong = append(wrong, x)
				}
			}
		}
		separate(weights, wrong, right)
		return weights
	}
	take := func(weights []float64) {
		for i, name := range voters {
			s.Weights[name] = rounded(weights[i])
		}
		s.Offset = rounded(weights[len(voters)])
		s.prepare()
	}
	var held [][]likely // by row: the labels, with weights fitted without the row
	if len(rows) >= few {
		held = make([][]likely, len(rows))
	}
	for fold := range folds {
		if ctx.Err() != nil || held == nil {
			break
		}
		take(fit(func(i int) bool { return i%folds != fold }))
		for i := fold; i < len(rows); i += folds {
			all := s.decide(rows[i].labels, rows[i].inputs, s.weights)
			for j := range all {
				all[j].right = slices.Contains(rows[i].set, all[j].Label)
			}
			held[i] = all
		}
	}
	take(fit(func(int) bool { return true }))
	s.Empty = slices.ContainsFunc(rows, func(r setRow) bool { return len(r.set) == 0 })
	if held != nil {
		expected := 0
		for _, r := range rows {
			expected += len(r.set)
		}
		s.Threshold = s.threshold(held, expected, precision)
		var t trial
		for i, all := range held {
			t = append(t, pointOf(all, s.answered(all), len(rows[i].set)))
		}
		s.Calibration = t.calibrated(uncalibrated, smooth)
	}
	return s, ctx.Err()
}

// addSet adds the row that was read last.
func (l *lesson) addSet(t *sdk.TrainingRow) {
	row := setRow{id: strings.Clone(t.ID), set: l.form.Split(strings.Clone(t.Label)), casts: slices.Clone(l.reader.cast)}
	for i, c := range row.casts {
		row.casts[i].shares = slices.Clone(c.shares)
	}
	for _, label := range l.reader.labels {
		row.labels = append(row.labels, strings.Clone(label))
	}
	l.sets = append(l.sets, row)
}

// threshold returns the threshold with the best F1 over all labels of the rows; expected is the number of their right
// labels. With a precision it returns the smallest threshold from there on that reaches the precision, and 1 if none
// does.
func (s *sets) threshold(held [][]likely, expected int, precision float64) float64 {
	const most = 100
	var f1, kept [most]float64
	for percent := 1; percent < most; percent++ {
		at := &sets{Threshold: float64(percent) / most, strict: s.strict, Empty: s.Empty}
		right, answered := 0, 0
		for _, all := range held {
			n := at.answered(all)
			answered += n
			for _, l := range all[:n] {
				if l.right {
					right++
				}
			}
		}
		f1[percent], kept[percent] = 2*float64(right)/float64(max(answered+expected, 1)), wilson(right, answered)
	}
	from, to := plateau(f1[:], slices.Max(f1[1:]))
	best := (from + to) / 2
	if precision == 0 || kept[best] >= precision {
		return float64(best) / most
	}
	for from = best + 1; from < most && !(kept[from] >= precision); from++ {
	}
	for to = from; to+1 < most && kept[to+1] == kept[from]; to++ {
	}
	return float64((from+to)/2) / most
}

// plateau returns the bounds of the longest run of values that equal as. It ignores the first value.
func plateau(values []float64, as float64) (from, to int) {
	to = -1
	for i := 1; i < len(values); i++ {
		start := i
		for i < len(values) && values[i] == as {
			i++
		}
		if i > start && i-1-start > to-from {
			from, to = start, i-1
		}
	}
	return from, to
}

// wilson is the lower end of the 95 % interval of the share part/whole (Wilson 1927).
func wilson(part, whole int) float64 {
	const z = 1.959964
	n, p := float64(whole), float64(part)/float64(max(whole, 1))
	return (p + z*z/(2*n) - z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))) / (1 + z*z/n)
}

// argument returns the argument calibration: everything but the weights.
func (s *sets) argument() map[string]float64 {
	all := map[string]float64{"slope": s.Calibration.Slope, "offset": s.Calibration.Offset, ofLabels: s.Offset, thresholdName: s.Threshold}
	if s.Empty {
		all[emptyName] = 1
	}
	return all
}

// Names in the argument calibration of an election of sets.
const ofLabels, thresholdName, emptyName = "offset of labels", "threshold", "no label"

// setsOf creates the model from its arguments.
func setsOf(weights, given map[string]float64) (*sets, error) {
	s := &sets{Weights: weights, Threshold: half, Calibration: uncalibrated}
	for name, value := range given {
		switch name {
		case "slope":
			s.Calibration.Slope = value
		case "offset":
			s.Calibration.Offset = value
		case ofLabels:
			s.Offset = value
		case thresholdName:
			s.Threshold = value
		case emptyName:
			s.Empty = value != 0
		default:
			return nil, &sdk.ArgumentError{Argument: "calibration", Err: fmt.Errorf("there is no %q; where labels are sets, give slope, offset, %s, %s and %s", name, ofLabels, thresholdName, emptyName)}
		}
	}
	return s.prepare(), nil
}
