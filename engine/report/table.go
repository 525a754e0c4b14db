package report

import (
	"bufio"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/run"
)

const (
	tableRows   = 12 // answers that a person gets to see
	tableWidth  = 64 // runes of a text
	remarkWidth = 100
)

// table shows the first answers to a person.
type table struct {
	w    *bufio.Writer
	rows []run.Result
	more int
}

func (t *table) Streams() bool { return false }

func (t *table) Write(r run.Result) error {
	if len(t.rows) < tableRows {
		t.rows = append(t.rows, r)
	} else {
		t.more++
	}
	return nil
}

func (t *table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TEXT\tANSWER\tAGREEMENT\t")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", shorten(r.Text, tableWidth), answerOf(r), agreement(r), remark(r))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if t.more > 0 {
		fmt.Fprintf(t.w, "... and %d more; --output FILE keeps them all\n", t.more)
	}
	return t.w.Flush()
}

func answerOf(r run.Result) string {
	switch {
	case r.RetrievalOnly && len(r.Candidates) > 0:
		return shorten(r.Candidates[0].ID, 40)
	case r.Failure != nil || r.Answer == "":
		return "-"
	}
	return shorten(r.Answer, tableWidth)
}

func agreement(r run.Result) string {
	if r.Answer == "" || r.Failure != nil {
		return ""
	}
	return fmt.Sprintf("%3.0f %%", 100*r.Agreement)
}

func remark(r run.Result) string {
	var all []string
	switch {
	case r.Failure != nil:
		all = append(all, fmt.Sprintf("line %d failed: %v", r.Line, r.Failure))
	case r.Reason != "":
		all = append(all, r.Reason)
	case r.Expected != "" && r.Expected != r.Answer && !r.RetrievalOnly:
		all = append(all, "expected "+r.Expected)
	}
	if len(r.Missing) > 0 {
		all = append(all, "without "+strings.Join(r.Without(), ", "))
	}
	if r.Flagged {
		all = append(all, "flagged")
	}
	if len(r.Citations) > 0 {
		all = append(all, cited(r.Citations))
	}
	return shorten(strings.Join(all, ", "), remarkWidth)
}

// shorten makes a text fit one line of n runes. What a terminal would obey
// instead of show is replaced: texts and answers come from anywhere.
func shorten(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	text = strings.Map(visible, text)
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// Legible is a message without what a terminal would obey. Lines behind the first
// are indented, so that none looks like another message.
func Legible(message string) string {
	lines := strings.Split(message, "\n")
	for i := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if r == '\t' { // of a stack, say
				return r
			}
			return visible(r)
		}, lines[i])
	}
	return strings.Join(lines, "\n    ")
}

// visible replaces what a terminal would obey.
func visible(r rune) rune {
	if obeyed(r) {
		return utf8.RuneError
	}
	return r // a byte that is no UTF-8 comes as utf8.RuneError
}

// obeyed reports whether a terminal would obey a character instead of showing it.
func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
