package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/terminal/junit"
	"github.com/racflow/racflow/engine/internal/workspace/expect"
)

// Doctor writes the findings, with rows and advice.
func Doctor(w io.Writer, r doctor.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s (%s)\n", f.Severity, terminal.Line(f.Message), f.Check)
		for _, row := range f.Rows {
			b.WriteString("    " + terminal.Line(row.File))
			if row.Line > 0 {
				fmt.Fprintf(&b, ":%d", row.Line)
			}
			if row.Text != "" {
				fmt.Fprintf(&b, "  %q", terminal.Shorten(row.Text, 60))
			}
			if row.Label != "" {
				fmt.Fprintf(&b, "  %s", terminal.Line(row.Label))
			}
			if row.Proposal != "" {
				fmt.Fprintf(&b, " -> %s", terminal.Line(row.Proposal))
			}
			if row.Note != "" {
				fmt.Fprintf(&b, "  [%s]", terminal.Line(row.Note))
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  %s\n\n", terminal.Line(f.Advice))
	}
	for _, why := range r.Skipped {
		fmt.Fprintf(&b, "not looked at: %s\n", terminal.Line(why))
	}
	fmt.Fprintf(&b, "%s of knowledge and %s of the input looked at", terminal.Plural(r.Rows, "row"), terminal.Plural(r.Items, "item"))
	if r.Voted > 0 {
		fmt.Fprintf(&b, ", %d of them with votes", r.Voted)
	}
	fmt.Fprintf(&b, ": %s\n", terminal.Plural(len(r.Findings), "finding"))
	_, err := io.WriteString(w, terminal.Visible(b.String(), "\n"))
	return err
}

// outcomes are the words for the outcomes of expectations.
var outcomes = map[expect.Outcome]string{expect.Holds: "ok", expect.Fails: "FAILS", expect.Skipped: "off"}

// Expect writes the outcomes of a pipeline's expectations, for people.
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

// inLine puts a text into one line, without control characters.
func inLine(text string) string { return terminal.Line(strings.Join(strings.Fields(text), " ")) }

// foundBy returns lines about the measured values, at least one.
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

// Figure returns a line on a measured figure.
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

// Baseline returns lines on a comparison with an earlier run.
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

// Expected writes the totals of all tests.
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

func within(i eval.Interval) string { return fmt.Sprintf("%.3f to %.3f", i.Low, i.High) }

// JUnit writes the outcomes of pipelines' expectations as JUnit test results. A suite is a pipeline; a case is an
// expectation.
func JUnit(w io.Writer, all []*expect.Report) error {
	var suites []junit.Suite
	for _, r := range all {
		suites = append(suites, suiteOf(r))
	}
	return junit.Write(w, suites)
}

func suiteOf(r *expect.Report) junit.Suite {
	s := junit.Suite{Name: r.File + " " + r.Pipeline}
	for _, v := range r.Verdicts {
		found := foundBy(v)
		c := junit.Case{Name: v.Name, Class: r.Pipeline, File: r.File, Line: v.Line}
		switch v.Outcome {
		case expect.Fails:
			message := v.Rule + ": " + strings.Join(found, "; ")
			c.Failure = &junit.Failure{Message: terminal.Shorten(message, maxMessage), Type: "expect", Text: v.Rule + "\n" + strings.Join(found, "\n")}
		case expect.Skipped:
			c.Skipped = &junit.Skipped{Message: found[0]}
		default:
			c.Out = v.Rule + "\n" + strings.Join(found, "\n")
		}
		s.Cases = append(s.Cases, c)
	}
	if b := r.Baseline; b != nil {
		found := Baseline(*b)
		c := junit.Case{Name: "baseline " + b.Run, Class: r.Pipeline, File: r.File}
		if c.Out = strings.Join(found, "\n"); b.Worse {
			c.Failure, c.Out = &junit.Failure{Message: found[0], Type: "baseline", Text: c.Out}, ""
		}
		s.Cases = append(s.Cases, c)
	}
	return s
}

// maxMessage is the maximum length in characters of a one-line message.
const maxMessage = 300
