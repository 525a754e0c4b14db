package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/expect"
	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/terminal"
)

// outcomes are the words of a table for what an expectation comes to.
var outcomes = map[expect.Outcome]string{expect.Holds: "ok", expect.Fails: "FAILS", expect.Skipped: "off"}

// Expect shows a person what became of the expectations of a pipeline.
func Expect(w io.Writer, r *expect.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, pipeline %q\n", terminal.Escape(r.File), r.Pipeline)
	width := len("baseline")
	for _, v := range r.Verdicts {
		width = max(width, terminal.Width(v.Name))
	}
	line := func(outcome expect.Outcome, name, rule string, found []string) {
		fmt.Fprintf(&b, "%-6s %-*s  %s\n", outcomes[outcome], width, name, rule)
		for _, f := range found {
			fmt.Fprintf(&b, "%*s%s\n", width+9, "", f)
		}
	}
	for _, v := range r.Verdicts {
		line(v.Outcome, v.Name, inLine(v.Rule), foundBy(v))
	}
	if p := r.Baseline; p != nil {
		outcome := expect.Holds
		if p.Worse {
			outcome = expect.Fails
		}
		line(outcome, "baseline", "not worse than "+terminal.Escape(p.Run), Baseline(*p))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inLine is a text in one line, without what a terminal would obey.
func inLine(text string) string { return terminal.Line(strings.Join(strings.Fields(text), " ")) }

// foundBy are lines on what was measured, at least one.
func foundBy(v expect.Verdict) (lines []string) {
	if v.Outcome == expect.Skipped {
		return []string{"enabled is false"}
	}
	for _, f := range v.Figures {
		lines = append(lines, Figure(f))
	}
	for _, need := range v.Needs() {
		lines = append(lines, inLine(need))
	}
	if v.Reason != "" {
		lines = append(lines, inLine(v.Reason))
	}
	if v.Outcome == expect.Fails && v.Description != "" {
		lines = append(lines, inLine(v.Description))
	}
	return lines
}

// Figure is a line on something that was measured.
func Figure(f expect.Figure) string {
	text := f.Figure + ": "
	switch v := f.Value.(type) {
	case nil:
		return inLine(text + "not measured")
	case float64:
		if f.Interval == nil {
			text += fmt.Sprintf("%.4g", v)
		} else {
			text += fmt.Sprintf("%.3f (%s)", v, within(*f.Interval))
		}
	case string:
		text += `"` + terminal.Shorten(v, valueWidth) + `"`
	default:
		text += fmt.Sprint(v)
	}
	if f.Of > 0 {
		text += fmt.Sprintf(", %d of %d", f.Count, f.Of)
	}
	if f.Note != "" {
		text += "; " + f.Note
	}
	return inLine(text)
}

// Baseline are lines on a comparison with an earlier run.
func Baseline(b expect.Baseline) []string {
	p := b.Paired
	lines := []string{fmt.Sprintf("%d lost, %d gained of %d: %+.3f (%s); McNemar's exact test: p = %.3g", p.Lost, p.Gained, p.Items, p.Difference(), within(p.Interval()), p.Chance())}
	if b.Worse {
		lines = append(lines, fmt.Sprintf("worse by more than chance explains: p is below %.2g", expect.Chance))
	}
	if len(b.Lost) > 0 {
		var ids []string
		for _, id := range b.Lost {
			ids = append(ids, terminal.Escape(id))
		}
		lost := "lost: " + strings.Join(ids, ", ")
		if p.Lost > len(ids) {
			lost += ", ..."
		}
		lines = append(lines, lost)
	}
	if b.Missing > 0 {
		lines = append(lines, fmt.Sprintf("%s left out that the run has not answered", terminal.Plural(b.Missing, "item")))
	}
	if b.Relabelled > 0 {
		lines = append(lines, fmt.Sprintf("%s left out whose label has changed", terminal.Plural(b.Relabelled, "item")))
	}
	return lines
}

// Expected sums up all that was tested.
func Expected(w io.Writer, all []*expect.Report) error {
	holds, fails, skipped := 0, 0, 0
	for _, r := range all {
		holds, fails, skipped = holds+r.Count(expect.Holds), fails+r.Count(expect.Fails), skipped+r.Count(expect.Skipped)
	}
	worse := slices.ContainsFunc(all, func(r *expect.Report) bool { return r.Baseline != nil && r.Baseline.Worse })
	text := fmt.Sprintf("%d of %d hold", holds, holds+fails)
	if skipped > 0 {
		text += fmt.Sprintf(", %d off", skipped)
	}
	if worse {
		text += "; worse than the baseline"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", text)
	return err
}

func within(i interval.Interval) string { return fmt.Sprintf("%.3f to %.3f", i.Low, i.High) }
