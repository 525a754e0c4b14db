package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// DroppedReport describes the refused answers of a voter.
type DroppedReport struct {
	Voter    string          `json:"voter"`
	Answers  int             `json:"answers"` // all its answers
	Dropped  int             `json:"dropped"` // of Answers: refused
	Frequent []DroppedAnswer `json:"frequent"`
}

// DroppedAnswer is a refused answer, shortened, and without control characters for a terminal.
type DroppedAnswer struct {
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"` // why Answer is empty
	Count  int    `json:"count"`            // a lower bound
}

const (
	shown      = 3
	shownWidth = 60 // runes of an answer
)

// DroppedAnswers reports the voters of a run with more than 5 % of their answers refused.
func DroppedAnswers(t outcome.Totals) []DroppedReport {
	var all []DroppedReport
	for _, d := range t.Dropped() {
		all = append(all, droppedReport(d))
	}
	return all
}

func droppedReport(d outcome.Dropped) DroppedReport {
	slices.SortStableFunc(d.Texts, func(a, b outcome.Text) int { return cmp.Compare(b.Count, a.Count) })
	r := DroppedReport{Voter: d.Voter, Answers: d.Answers, Dropped: d.Dropped}
	for _, t := range d.Texts[:min(len(d.Texts), shown)] {
		r.Frequent = append(r.Frequent, DroppedAnswer{terminal.Shorten(t.Answer, shownWidth), terminal.Shorten(t.Reason, shownWidth), t.Count})
	}
	return r
}

// String returns the report as a line for a person.
func (r DroppedReport) String() string {
	var frequent []string
	for _, a := range r.Frequent {
		reason := ""
		if a.Reason != "" {
			reason = ": " + a.Reason
		}
		frequent = append(frequent, fmt.Sprintf("%q (%d%s)", a.Answer, a.Count, reason))
	}
	return fmt.Sprintf("sample.%s: %d of %d answers do not count (%d %%), such as %s", r.Voter, r.Dropped, r.Answers, 100*r.Dropped/max(r.Answers, 1), strings.Join(frequent, ", "))
}

// ByChance is a voter that agrees with the other voters hardly more than by chance.
type ByChance struct {
	Voter  string  `json:"voter"`
	Items  int     `json:"items"`
	Same   int     `json:"same"`   // of Items: the voter agrees with the others
	Chance float64 `json:"chance"` // the share expected by chance
}

// String returns a line for a person.
func (s ByChance) String() string {
	return fmt.Sprintf("sample.%s: says what the other voters say on %d of %d items (%.0f %%), and would by chance on %.0f %%: look at its answers, or leave it out",
		s.Voter, s.Same, s.Items, 100*float64(s.Same)/float64(s.Items), 100*s.Chance)
}
