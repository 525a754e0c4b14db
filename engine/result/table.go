package result

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/terminal"
)

const (
	tableRows   = 12 // results that a table shows
	textWidth   = 64 // runes of a text
	idWidth     = 40
	remarkWidth = 100
)

// table shows the first results to a person.
type table struct {
	w    *bufio.Writer
	rows []outcome.Result
	more int
	hint string
}

func (t *table) Write(r outcome.Result) error {
	if len(t.rows) < tableRows {
		t.rows = append(t.rows, r)
	} else {
		t.more++
	}
	return nil
}

// Flush shows nothing: what is shown is laid out together.
func (t *table) Flush() error { return nil }

func (t *table) Close() error {
	if len(t.rows) == 0 {
		return nil
	}
	tw := terminal.NewTable(t.w)
	how, sure := "AGREEMENT", func(r outcome.Result) float64 { return r.Agreement }
	if slices.ContainsFunc(t.rows, func(r outcome.Result) bool { return r.Confidence > 0 && r.Decided == nil }) {
		how, sure = "CONFIDENCE", func(r outcome.Result) float64 { return r.Confidence }
	}
	fmt.Fprintf(tw, "TEXT\tANSWER\t%s\t\n", how)
	for _, r := range t.rows {
		answer, share := "-", ""
		switch {
		case r.RetrievalOnly && len(r.Candidates) > 0:
			answer = terminal.Shorten(r.Candidates[0].ID, idWidth)
		case r.Failure == nil && r.Answer != "":
			answer, share = terminal.Shorten(r.Answer, textWidth), fmt.Sprintf("%3.0f %%", 100*sure(r))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", terminal.Shorten(r.Text, textWidth), answer, share, remark(r))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if t.more > 0 {
		fmt.Fprintf(t.w, "... and %d more; %s\n", t.more, t.hint)
	}
	return t.w.Flush()
}

// remark is what else a person should see of a result.
func remark(r outcome.Result) string {
	var all []string
	switch {
	case r.Failure != nil:
		all = append(all, fmt.Sprintf("%s failed: %v", r.Place(), r.Failure))
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
	return terminal.Shorten(strings.Join(all, ", "), remarkWidth)
}
