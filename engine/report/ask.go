package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/relevance"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// excerptLines is how much of a passage a person gets to see.
const excerptLines = 3

// Asking says how one question's outcome is shown.
type Asking struct {
	Width    int    // columns of the terminal
	Passages int    // at most, where there is no answer
	More     string // how to see all of n passages, with %d for n
	Whole    bool   // passages with all of their text
	Bold     bool   // what matched stands out by escape sequences
	// Terms are the words that match; nil: none.
	Terms *relevance.Terms
	// Judgement says whether the passages are likely to answer the question.
	Judgement relevance.Judgement
}

// Ask shows a person what became of one question: the answer with the passages
// that it cites, or why there is none with the nearest passages.
func Ask(w io.Writer, r outcome.Result, a Asking) error {
	a.Width = max(a.Width, 20)
	out := bufio.NewWriter(w)
	switch {
	case r.Failure != nil:
	case r.Answer != "":
		for _, line := range terminal.Wrap(r.Answer, a.Width) {
			fmt.Fprintln(out, line)
		}
		a.remark(out, r)
		for _, c := range r.Citations {
			fmt.Fprintln(out)
			a.passage(out, fmt.Sprintf("[%d]  ", c.Number), c.Passage)
		}
	case !r.RetrievalOnly:
		for _, line := range terminal.Wrap("No answer: "+why(r), a.Width) {
			fmt.Fprintln(out, line)
		}
	case len(r.Candidates) == 0:
		fmt.Fprintln(out, "No passage was found.")
	case a.Judgement.Unlikely:
		warning := "Probably nothing here answers this"
		if p := a.Judgement.Probability; !math.IsNaN(p) {
			warning += fmt.Sprintf(" (the probability that something does is %.0f %%)", 100*p)
		}
		for _, line := range terminal.Wrap(warning+". The nearest passages:", a.Width) {
			fmt.Fprintln(out, line)
		}
		fmt.Fprintln(out)
	}
	if r.Answer == "" || r.Failure != nil {
		a.passages(out, r)
	}
	return out.Flush()
}

// why is why there is no answer: of answers that do not count, also why not.
func why(r outcome.Result) string {
	text := r.Reason
	if i := slices.IndexFunc(r.Votes, func(v outcome.Vote) bool { return !v.Accepted && v.Reason != "" }); i >= 0 && !slices.ContainsFunc(r.Votes, func(v outcome.Vote) bool { return v.Accepted }) {
		text += fmt.Sprintf(" (%s: %s)", r.Votes[i].Voter, r.Votes[i].Reason)
	}
	return strings.Join(strings.Fields(text), " ")
}

// remark says how sure an election of several votes was.
func (a Asking) remark(w io.Writer, r outcome.Result) {
	if len(r.Votes) < 2 && !r.Flagged {
		return
	}
	text := fmt.Sprintf("(agreement %.0f %%", 100*r.Agreement)
	if r.Flagged {
		text += ", flagged"
	}
	fmt.Fprintln(w, text+")")
}

// passages shows the nearest passages.
func (a Asking) passages(w io.Writer, r outcome.Result) {
	shown := r.Candidates[:min(len(r.Candidates), a.Passages)]
	if len(shown) > 0 && !r.RetrievalOnly {
		fmt.Fprintln(w, "\nNearest passages:")
	}
	for i, c := range shown {
		if i > 0 || !r.RetrievalOnly {
			fmt.Fprintln(w)
		}
		a.passage(w, fmt.Sprintf("%2d  %.3f  ", i+1, c.Score), c)
	}
	if more := len(r.Candidates) - len(shown); more > 0 && len(shown) > 0 {
		fmt.Fprintf(w, "\n... and %d more; "+a.More+"\n", more, len(r.Candidates))
	}
}

// passage shows where a candidate stands, and the part of it that has most of what
// matches.
func (a Asking) passage(w io.Writer, number string, c sdk.Candidate) {
	fmt.Fprintln(w, terminal.Fit(number+where(c), a.Width))
	const indent = "    "
	for _, line := range a.excerpt(c, a.Width-len(indent)) {
		if a.Bold && a.Terms != nil {
			line = a.Terms.Mark(line, "\x1b[1m", "\x1b[22m")
		}
		fmt.Fprintln(w, strings.TrimRight(indent+line, " "))
	}
}

// where is a candidate's place, then its heading or declaration. A title that is
// the file's name is part of the place.
func where(c sdk.Candidate) string {
	text := func(key string) string { s, _ := c.Meta[key].(string); return s }
	place := result.Place(c)
	for _, key := range []string{"headings", "declaration", "title"} {
		if heading := text(key); heading != "" {
			if heading != path.Base(text("path")) {
				place += "  " + heading
			}
			break
		}
	}
	return terminal.Line(strings.Join(strings.FieldsFunc(place, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
}

// excerpt is a few lines of a candidate's text, or all of them. Headings that it begins
// with are left out of a few lines where they are shown already.
func (a Asking) excerpt(c sdk.Candidate, width int) []string {
	text := strings.ReplaceAll(c.Text, "\f", "\n") // between the pages of a PDF
	if _, shown := c.Meta["headings"]; shown && !a.Whole {
		for {
			line, rest, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
			if strings.TrimLeft(line, "#") == line || strings.TrimSpace(rest) == "" {
				break
			}
			text = rest
		}
	}
	if c.Meta["format"] != "code" {
		text = terminal.Reflow(text)
	}
	const mark = 2 // columns of an ellipsis and a space
	if a.Whole {
		return terminal.Wrap(text, width)
	}
	lines := slices.DeleteFunc(terminal.Wrap(text, width-mark), func(line string) bool { return line == "" })
	if len(lines) <= excerptLines {
		return lines
	}
	at := 0
	if a.Terms != nil {
		at = a.Terms.Densest(lines, excerptLines)
	}
	shown := slices.Clone(lines[at : at+excerptLines])
	if at > 0 {
		shown[0] = "… " + shown[0]
	}
	if at+excerptLines < len(lines) {
		shown[excerptLines-1] = terminal.Fit(shown[excerptLines-1]+" …", width)
	}
	return shown
}
