package mcp

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/pipeline"
)

// maxLabels is how many labels a description names.
const maxLabels = 200

// describe says what a pipeline is for, to a model that may call it.
func describe(p *pipeline.Pipeline, s live.Status) string {
	var names []string
	for _, k := range p.Knowledge() {
		names = append(names, k.Name)
	}
	of := ""
	if len(names) > 0 {
		of = " from the knowledge " + strings.Join(names, ", ")
	}
	switch s.Answers {
	case manifest.Passages:
		return "Finds the passages that belong to a text" + of + ", best first."
	case manifest.Texts:
		return "Answers a question" + of + ", and cites the passages that the answer rests on."
	case manifest.Labels:
		labels := s.Labels
		more := ""
		if len(labels) > maxLabels {
			labels, more = labels[:maxLabels], fmt.Sprintf(", and %d more", len(labels)-maxLabels)
		}
		return fmt.Sprintf("Sorts a text into one of %d labels%s: %s%s.", len(s.Labels), of, strings.Join(labels, ", "), more)
	}
	return "Takes a text through the pipeline " + p.Name + "."
}

// text is a result for a model to read: the answer, what it cites and whether it is in doubt,
// or the passages that were found.
func text(r engine.Result) string {
	var b strings.Builder
	switch {
	case r.Answer != "":
		b.WriteString(string(r.Answer))
	case len(r.Candidates) > 0:
		for i, c := range r.Candidates {
			fmt.Fprintf(&b, "[%d] %s", i+1, c.ID)
			if c.Label != "" {
				fmt.Fprintf(&b, " (%s)", c.Label)
			}
			fmt.Fprintf(&b, "\n%s\n\n", c.Text)
		}
	default:
		b.WriteString("There is no answer.")
		if r.Reason != "" {
			fmt.Fprintf(&b, " %s", r.Reason)
		}
	}
	for _, c := range r.Citations {
		place := c.ID
		if c.Path != nil {
			place = fmt.Sprint(c.Path)
		}
		fmt.Fprintf(&b, "\n[%d] %s", c.Number, place)
	}
	if r.Flagged {
		b.WriteString("\n(The voters disagree: a person should look at this answer.)")
	}
	return strings.TrimSpace(b.String())
}
