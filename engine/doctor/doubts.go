package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Doubt is a row that a person should look at, with all that the last look found about it.
type Doubt struct {
	Row      int      // of the set
	Severity Severity // of the worst finding
	Why      []string // a sentence for each finding, without an end
	Labels   []string // that the row may have instead, the likeliest first
	Copy     bool     // an earlier row has the same text and label
	Sure     float64  // what voters say for the first of Labels, from 0 to 1; 0: they were not asked
}

// Doubts returns the rows of a set that was looked at whose label or presence a person can correct,
// in the order of the set. Rows that people have decided about are not among them.
func Doubts(s *Set) []Doubt {
	all := map[int]*Doubt{}
	add := func(row int, severity Severity, why string, labels ...string) *Doubt {
		d := all[row]
		if d == nil {
			d = &Doubt{Row: row, Severity: Info}
			all[row] = d
		}
		if slices.Index(severities, severity) < slices.Index(severities, d.Severity) {
			d.Severity = severity
		}
		if !slices.Contains(d.Why, why) {
			d.Why = append(d.Why, why)
		}
		for _, label := range labels {
			if label != "" && label != s.Rows[row].Label && !slices.Contains(d.Labels, label) {
				d.Labels = append(d.Labels, label)
			}
		}
		return d
	}
	for _, found := range s.suspected {
		label := found.Label
		add(found.row, Warning, "voters that have not seen it: "+found.why(), label).Sure = found.Share
	}
	to := unified(spellings(s.counts()))
	for i, row := range s.Rows {
		if label, ok := to[row.Label]; ok {
			add(i, Error, fmt.Sprintf("the label is spelt %q in more rows", label), label)
		}
	}
	for _, group := range s.copies() {
		first := map[string]int{} // rows, by label
		var labels []string
		for _, i := range group {
			if label := s.Rows[i].Label; first[label] == 0 {
				first[label] = i + 1
				labels = append(labels, label)
			}
		}
		for _, i := range group {
			for _, label := range labels {
				at := first[label] - 1
				switch of := s.Rows[at]; {
				case label != s.Rows[i].Label:
					add(i, Error, fmt.Sprintf("%s %q in %s:%d", contrary, label, of.File, of.Line), label)
				case at != i:
					add(i, Info, fmt.Sprintf("a copy of %s:%d", of.File, of.Line)).Copy = true
				}
			}
		}
	}
	for i, others := range s.disputed {
		for _, other := range others {
			of := s.Rows[other]
			add(i, Warning, fmt.Sprintf("nearly the same as %s:%d %q, which has the label %q", of.File, of.Line, short(of.Text), of.Label), of.Label)
		}
	}
	var doubts []Doubt
	for _, d := range all {
		if !s.Rows[d.Row].Reviewed {
			doubts = append(doubts, *d)
		}
	}
	slices.SortFunc(doubts, func(a, b Doubt) int { return cmp.Compare(a.Row, b.Row) })
	return doubts
}
