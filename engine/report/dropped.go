package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

const (
	droppedShown = 3
	droppedWidth = 60 // runes of an answer
)

// readings are the arguments of voters that read more than what is written exactly
// so. Nearest is offered at 1 alone, where nothing but the words of a label counts:
// what is less may take one label for another.
var readings = []struct {
	argument, given string
	options         answer.Options
}{
	{"read", `read = "plain"`, answer.Options{}},
	{"nearest", "nearest = 1", answer.Options{Exact: true, Nearest: 1}},
}

// Dropped says how many answers of a voter do not count, which of them are the most
// frequent, and what would read them. The stage is the voter's; the labels are those
// of the knowledge.
func Dropped(d outcome.Dropped, stage sdk.Stage, labels []string) string {
	texts := slices.Clone(d.Texts)
	slices.SortStableFunc(texts, func(a, b outcome.Text) int { return cmp.Compare(b.Count, a.Count) })
	var shown []string
	for _, t := range texts[:min(len(texts), droppedShown)] {
		reason := ""
		if t.Reason != "" {
			reason = ": " + terminal.Shorten(t.Reason, droppedWidth)
		}
		shown = append(shown, fmt.Sprintf("%q (%d%s)", terminal.Shorten(t.Answer, droppedWidth), t.Count, reason))
	}
	text := fmt.Sprintf("sample.%s: %d of %d answers do not count, such as %s", d.Voter, d.Dropped, d.Answers, strings.Join(shown, ", "))
	best, most := 0, 0
	for i, r := range readings {
		if n := readable(texts, labels, r.options); n > most {
			best, most = i, n
		}
	}
	if most == 0 {
		return text
	}
	given := readings[best].given
	if !slices.ContainsFunc(stage.Arguments, func(a sdk.Argument) bool { return a.Name == readings[best].argument }) {
		given = "a voter with " + given
	}
	return fmt.Sprintf("%s; %s would read %d of them as labels", text, given, most)
}

// readable counts the answers that are read as a label with options, and are none
// without.
func readable(texts []outcome.Text, labels []string, o answer.Options) int {
	known := map[string]bool{}
	for _, l := range labels {
		known[l] = true
	}
	n := 0
	for _, t := range texts {
		if read := answer.Read(t.Answer, sdk.Prompt{Labels: labels}, o); !known[t.Answer] && known[read.Label] {
			n += t.Count
		}
	}
	return n
}
