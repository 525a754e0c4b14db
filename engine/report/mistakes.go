package report

import (
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/terminal"
)

const (
	maxConfused  = 10  // pairs of labels that an evaluation shows
	mistakeWidth = 100 // columns of a text
)

// confused writes which labels are taken for which.
func confused(w io.Writer, pairs []eval.Confused) {
	if len(pairs) == 0 {
		return
	}
	fmt.Fprintf(w, "\nEXPECTED\tANSWERED INSTEAD\tITEMS\n")
	for _, pair := range pairs[:min(len(pairs), maxConfused)] {
		fmt.Fprintf(w, "%s\t%s\t%d\n", terminal.Shorten(pair.Expected, valueWidth), answered(pair.Answered), pair.Items)
	}
	if more := len(pairs) - maxConfused; more > 0 {
		fmt.Fprintf(w, "... and %s more; --json has them all\n", terminal.Plural(more, "pair"))
	}
}

func answered(label string) string {
	if label == "" {
		return "no answer"
	}
	return terminal.Shorten(label, valueWidth)
}

// mistakes writes the wrong answers that the pipeline was surest of.
func mistakes(w io.Writer, all []eval.Mistake) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "\nERRORS (the surest first)"); err != nil {
		return err
	}
	for _, m := range all {
		said := answered(m.Answer)
		switch {
		case m.Error != "":
			said = "failed: " + terminal.Shorten(m.Error, mistakeWidth)
		case m.Answer == "" && m.Reason != "":
			said += ": " + terminal.Shorten(m.Reason, mistakeWidth)
		case m.Confidence > 0:
			said += fmt.Sprintf(", confidence %.4f", m.Confidence)
		case m.Answer != "":
			said += fmt.Sprintf(", agreement %.4f", m.Agreement)
		}
		if m.Flagged {
			said += ", flagged"
		}
		fmt.Fprintf(w, "\n%s (line %d): %s\n", terminal.Shorten(m.ID, valueWidth), m.Line, terminal.Shorten(m.Text, mistakeWidth))
		fmt.Fprintf(w, "  expected  %s\n  answered  %s\n", terminal.Shorten(m.Expected, valueWidth), said)
		for _, n := range m.Neighbours {
			if _, err := fmt.Fprintf(w, "  %8.4f  %s: %s\n", n.Score, terminal.Shorten(n.ID, valueWidth), terminal.Shorten(n.Text, mistakeWidth)); err != nil {
				return err
			}
		}
	}
	return nil
}
