package dropped

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/terminal"
)

// Report is what is said of a voter's answers that do not count.
type Report struct {
	Voter    string   `json:"voter"`
	Answers  int      `json:"answers"` // that it gave
	Dropped  int      `json:"dropped"` // of them
	Frequent []Answer `json:"frequent"`
	Advice   []string `json:"advice,omitempty"`
}

// Answer is one that was dropped, shortened, and without what a terminal would obey.
type Answer struct {
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"` // why there is none, where it is empty
	Count  int    `json:"count"`            // at least
}

const (
	shown      = 3
	shownWidth = 60 // runes of an answer
)

// Of reports the voters of a run of whose answers more than 5 % do not count. The labels
// are those of the knowledge.
func Of(t outcome.Totals, p *pipeline.Pipeline, labels []string) []Report {
	var all []Report
	for _, d := range t.Dropped() {
		all = append(all, of(d, p, labels))
	}
	return all
}

func of(d outcome.Dropped, p *pipeline.Pipeline, labels []string) Report {
	slices.SortStableFunc(d.Texts, func(a, b outcome.Text) int { return cmp.Compare(b.Count, a.Count) })
	r := Report{Voter: d.Voter, Answers: d.Answers, Dropped: d.Dropped}
	for _, t := range d.Texts[:min(len(d.Texts), shown)] {
		r.Frequent = append(r.Frequent, Answer{terminal.Shorten(t.Answer, shownWidth), terminal.Shorten(t.Reason, shownWidth), t.Count})
	}
	r.Advice = advice(d, p, labels)
	return r
}

// String says it to a person, in a line.
func (r Report) String() string {
	var frequent []string
	for _, a := range r.Frequent {
		reason := ""
		if a.Reason != "" {
			reason = ": " + a.Reason
		}
		frequent = append(frequent, fmt.Sprintf("%q (%d%s)", a.Answer, a.Count, reason))
	}
	text := fmt.Sprintf("sample.%s: %d of %d answers do not count (%d %%), such as %s", r.Voter, r.Dropped, r.Answers, 100*r.Dropped/max(r.Answers, 1), strings.Join(frequent, ", "))
	return strings.Join(append([]string{text}, r.Advice...), "; ")
}
