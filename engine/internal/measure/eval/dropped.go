package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file explains why many answers of a voter were refused, and advises arguments of the voter that
// would make them acceptable. Whether that helps accuracy, it cannot know.

// advice returns the argument of a voter that would read most of its refused answers; nil: none reads any.
func advice(d outcome.Dropped, p *pipeline.Pipeline, labels []string) []string {
	voter := voterOf(p, d.Voter)
	reads, read := argument(voter, "read")
	_, nearest := argument(voter, "nearest")
	setting, has := `read = "plain"`, read
	n := 0
	if reads != "plain" {
		n = readable(d.Texts, labels, support.AnswerOptions{})
	}
	// Only 1, where nothing but a label's words counts: less may confuse labels.
	if more := readable(d.Texts, labels, support.AnswerOptions{Exact: true, Nearest: 1}); more > n {
		n, setting, has = more, "nearest = 1", nearest
	}
	switch {
	case n == 0:
		return nil
	case !has:
		setting = "a voter with " + setting
	}
	return []string{fmt.Sprintf("%s would read %d of them as labels", setting, n)}
}

// readable counts the answers that these options read as a label, and that are no label without
// them.
func readable(texts []outcome.Text, labels []string, o support.AnswerOptions) (n int) {
	for _, t := range texts {
		read := support.ReadAnswer(t.Answer, sdk.Prompt{Labels: labels}, o).Label
		if t.Answer != "" && !slices.Contains(labels, t.Answer) && slices.Contains(labels, read) {
			n += t.Count
		}
	}
	return n
}

// voterOf returns the stage of a voter; nil: there is none.
func voterOf(p *pipeline.Pipeline, name string) *pipeline.Stage {
	for _, s := range p.Stages {
		if s.Block == "sample" && s.Name == name {
			return s
		}
	}
	return nil
}

// argument returns the value of a stage's argument, texts without quotes; ok: the stage has it.
func argument(s *pipeline.Stage, name string) (value string, ok bool) {
	if s == nil {
		return "", false
	}
	at := slices.IndexFunc(s.Info.Arguments, func(a sdk.Argument) bool { return a.Name == name })
	if at < 0 {
		return "", false
	}
	raw := []byte(s.Info.Arguments[at].Default)
	var given map[string]json.RawMessage
	if json.Unmarshal(s.Config.Public, &given) == nil && given[name] != nil {
		raw = given[name]
	}
	if json.Unmarshal(raw, &value) != nil {
		value = string(raw)
	}
	return value, true
}

// DroppedReport describes the refused answers of a voter.
type DroppedReport struct {
	Voter    string          `json:"voter"`
	Answers  int             `json:"answers"` // all its answers
	Dropped  int             `json:"dropped"` // of Answers: refused
	Frequent []DroppedAnswer `json:"frequent"`
	Advice   []string        `json:"advice,omitempty"`
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

// DroppedAnswers reports the voters of a run with more than 5 % of their answers refused. The labels
// are the knowledge's.
func DroppedAnswers(t outcome.Totals, p *pipeline.Pipeline, labels []string) []DroppedReport {
	var all []DroppedReport
	for _, d := range t.Dropped() {
		all = append(all, of(d, p, labels))
	}
	return all
}

func of(d outcome.Dropped, p *pipeline.Pipeline, labels []string) DroppedReport {
	slices.SortStableFunc(d.Texts, func(a, b outcome.Text) int { return cmp.Compare(b.Count, a.Count) })
	r := DroppedReport{Voter: d.Voter, Answers: d.Answers, Dropped: d.Dropped}
	for _, t := range d.Texts[:min(len(d.Texts), shown)] {
		r.Frequent = append(r.Frequent, DroppedAnswer{terminal.Shorten(t.Answer, shownWidth), terminal.Shorten(t.Reason, shownWidth), t.Count})
	}
	r.Advice = advice(d, p, labels)
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
	text := fmt.Sprintf("sample.%s: %d of %d answers do not count (%d %%), such as %s", r.Voter, r.Dropped, r.Answers, 100*r.Dropped/max(r.Answers, 1), strings.Join(frequent, ", "))
	return strings.Join(append([]string{text}, r.Advice...), "; ")
}
