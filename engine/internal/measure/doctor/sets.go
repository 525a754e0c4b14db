package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file doubts single labels of sets. Each label is a question of its own, one against the rest:
// does a row have it or not? The model of confident.go is fitted to the answers of all rows, label by
// label, since a label that many people forget says nothing of another one.

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
	doubts := make([][]LabelDoubt, len(rows))
	for _, label := range slices.Sorted(maps.Keys(with)) {
		if with[label] < fewRows {
			continue // voters know too little of it
		}
		one := make([]VotedRow, len(rows))
		for i, row := range rows {
			share := min(row.Votes[label], 1)
			one[i].Votes = map[string]float64{label: share, "": 1 - share}
			if has[i][label] {
				one[i].Label = label
			}
		}
		n := noiseOf(one)
		for i, row := range rows {
			if wrong, instead := n.wrong(i); wrong >= minWrong && n.likeliest[i] != one[i].Label {
				doubts[i] = append(doubts[i], LabelDoubt{label, !has[i][label], row.Votes[label], wrong, instead >= minSure})
			}
		}
	}
	for i, of := range doubts {
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
