package review

import (
	"slices"

	"github.com/racflow/racflow/engine/doctor"
)

// OfFindings makes a case of each row that racflow doctor found something wrong with and that a person can
// correct: by another label, or by dropping it. Errors come first, then what voters are surest about.
func OfFindings(s *doctor.Set) []Case {
	var cases []Case
	for i, d := range doctor.Doubts(s) {
		row := s.Rows[d.Row]
		c := Case{
			ID: idOf(row.Text, row.Entry), Text: row.Text, Row: row.Entry, File: row.File, Line: row.Line, Why: d.Why, Answer: row.Label,
			Suggestions: slices.Clone(d.Labels), order: i, doubt: d.Sure / 4, // from 0 to 1/4
		}
		c.suggest(row.Label) // to say that it is right
		c.Drop = d.Copy && len(d.Labels) == 0
		switch d.Severity {
		case doctor.Error:
			c.doubt += .75
		case doctor.Warning:
			c.doubt += .375
		case doctor.Info:
		}
		cases = append(cases, c)
	}
	return cases
}
