package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file doubts single labels of sets. Whether a row has a label is a question of its own, one
// label against the rest. The model of confident.go, with two answers, is fitted to the questions of
// all rows and labels together: fitted label by label, it took most rare labels for wrong.
//
// The table shows rows that join one to three utterances. In a share of the rows, a label was removed,
// added or replaced (columns as in confident.go):
//
//	                     5 %               10 %
//	                n    e    r       n    e    r
//	SNIPS, minilm  0.82 0.81 0.53    0.84 0.80 0.54    600 rows
//	HWU64, minilm  0.46 0.80 0.57    0.59 0.84 0.58    1,200 rows
//
// In rows that were not changed, no row of SNIPS is named and 16 of HWU64, where voters overlook one
// of three utterances. So the share expected to be wrong is too high where voters are weak.

// LabelDoubt is a label of a set that is rather wrong, or rather missing.
type LabelDoubt struct {
	Label   string
	Missing bool
	Share   float64 // probability of the label by the votes
	Wrong   float64 // probability that it is wrong to have, or to miss, at least minWrong
	sure    bool    // the probability is so high that the set can be corrected
}

func (d LabelDoubt) String() string {
	what := "wrong"
	if d.Missing {
		what = "missing"
	}
	return fmt.Sprintf("%q is rather %s (%.2f of the votes, %.0f %% likely)", d.Label, what, d.Share, 100*d.Wrong)
}

// suspectSets returns rows whose set is probably wrong, as Suspects does. Label is the set with all
// doubted labels corrected; Wrong is the probability that one of them is wrong.
func suspectSets(rows []VotedRow, form sdk.LabelForm) (all []Suspect) {
	has := make([]map[string]bool, len(rows))
	with := map[string]int{}
	for i, row := range rows {
		has[i] = map[string]bool{}
		for _, label := range form.Split(row.Label) {
			has[i][label] = true
			with[label]++
		}
	}
	maps.DeleteFunc(with, func(_ string, n int) bool { return n < fewRows }) // voters know too little of them
	labels := slices.Sorted(maps.Keys(with))
	asked := questions{at: map[question]int{}}
	for i, row := range rows {
		for _, label := range labels {
			asked.add(questionOf(row, label, has[i][label]))
		}
	}
	n := noiseOf(asked.all, asked.times)
	for i, row := range rows {
		var of []LabelDoubt
		for _, label := range labels {
			at := asked.at[questionOf(row, label, has[i][label])]
			if wrong, instead := n.wrong(at); wrong >= minWrong && n.likeliest[at] != asked.all[at].Label {
				of = append(of, LabelDoubt{label, !has[i][label], row.Votes[label], wrong, instead >= minSure})
			}
		}
		if len(of) == 0 {
			continue
		}
		slices.SortStableFunc(of, func(a, b LabelDoubt) int { return cmp.Compare(b.Wrong, a.Wrong) })
		s, right := Suspect{Row: i, Share: of[0].Share, Relabel: true, Doubts: of}, 1.
		if !of[0].Missing {
			s.Share = 1 - s.Share
		}
		for _, d := range of {
			has[i][d.Label] = d.Missing
			right *= 1 - d.Wrong
			s.Relabel = s.Relabel && d.sure
		}
		maps.DeleteFunc(has[i], func(_ string, is bool) bool { return !is })
		s.Label, s.Wrong = sdk.JoinLabels(slices.Collect(maps.Keys(has[i]))), 1-right
		s.Relabel = s.Relabel && s.Label != ""
		all = append(all, s)
	}
	sortSuspects(all)
	return all
}

// question asks whether a row has a label.
type question struct {
	has   bool
	share float64 // of the votes for the label, rounded so that many questions are equal
}

func questionOf(row VotedRow, label string, has bool) question {
	const steps = 1e4
	return question{has, min(max(math.Round(steps*row.Votes[label]), 1), steps-1) / steps}
}

// questions holds each question once, as a row with the label "yes" or "no".
type questions struct {
	at    map[question]int
	all   []VotedRow
	times []float64 // how often each is asked
}

func (q *questions) add(one question) {
	at, known := q.at[one]
	if !known {
		at = len(q.all)
		q.at[one] = at
		label := map[bool]string{true: "yes", false: "no"}[one.has]
		q.all, q.times = append(q.all, VotedRow{Label: label, Votes: map[string]float64{"yes": one.share, "no": 1 - one.share}}), append(q.times, 0)
	}
	q.times[at]++
}

// Form says how the set's labels are written.
func (s *Set) Form() sdk.LabelForm { return s.Mapping.Labels.LabelForm }

// Labels returns the labels of the rows, sorted.
func (s *Set) Labels() []string { return slices.Sorted(maps.Keys(s.counts())) }

// respelt returns a label or set in the spelling that its labels have in most rows (unified).
func (s *Set) respelt(label string, to map[string]string) string {
	labels := s.Form().Split(label)
	for i, one := range labels {
		labels[i] = cmp.Or(to[one], one)
	}
	return sdk.JoinLabels(labels)
}

// apart names the labels that only one of two sets has; empty: rows have one label.
func (s *Set) apart(before, a, b string) string {
	if !s.Form().Many {
		return ""
	}
	var names []string
	in, other := s.Form().Split(a), s.Form().Split(b)
	for _, label := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(in, other)))) {
		if slices.Contains(in, label) != slices.Contains(other, label) {
			names = append(names, fmt.Sprintf("%q", label))
		}
	}
	return before + strings.Join(names, ", ")
}

// siblings reports whether two labels of a tree have the same node above them.
func (s *Set) siblings(a, b string) bool {
	of, with := s.Form().Path(a), s.Form().Path(b)
	return len(of) > 1 && len(of) == len(with) && of[len(of)-2] == with[len(with)-2]
}
