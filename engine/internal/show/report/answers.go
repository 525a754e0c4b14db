package report

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// answers writes the accuracy of the answers and related figures.
func answers(w io.Writer, r eval.Report) {
	fmt.Fprintf(w, "accuracy\t%.4f\tof %d items with an expected label; %s\n", r.Accuracy, r.Scored, sure(r.AccuracyInterval))
	if r.Decided > 0 {
		fmt.Fprintf(w, "not scored\t%d\t%s people have decided\n", r.Decided, map[bool]string{true: "item that", false: "items that"}[r.Decided == 1])
	}
	if sc := r.Scope; sc != nil {
		fmt.Fprintf(w, "in scope\t%.4f\tof %d items right; %.1f %% left without an answer; %s\n", sc.Accuracy, sc.In, 100*sc.Unanswered, sure(sc.Interval))
		fmt.Fprintf(w, "out of scope\t%.4f\tof %d items rightly left without an answer; %s\n", sc.Recall, sc.Out, sure(sc.RecallInterval))
	}
	if s := r.Sets; s != nil {
		fmt.Fprintf(w, "micro-F1\t%.4f\tof all labels; precision %.4f, recall %.4f; %s\n", s.MicroF1, s.Precision, s.Recall, sure(s.MicroF1Interval))
		fmt.Fprintf(w, "macro-F1\t%.4f\tover %d labels; %s\n", r.MacroF1, len(r.Labels), sure(s.MacroF1Interval))
		if s.Empty > 0 {
			fmt.Fprintf(w, "no label\t%d of %d\titems that have none, and are answered so\n", s.EmptyRight, s.Empty)
		}
		fmt.Fprintf(w, "example-F1\t%.4f\tmean over the items, which have %.2f labels and get %.2f\n", s.ExampleF1, s.ExpectedPerItem, s.AnsweredPerItem)
	} else {
		fmt.Fprintf(w, "macro-F1\t%.4f\tover %d labels\n", r.MacroF1, len(r.Labels))
	}
	if t := r.Tree; t != nil {
		fmt.Fprintf(w, "leaves\t%.4f\tof the answers are the expected label itself; %s\n", t.Leaves, sure(t.LeavesInterval))
		for i, l := range t.Levels {
			fmt.Fprintf(w, "level %d\t%.4f\tof %s right down to there, %d answered; %s\n", i+1, l.Accuracy, terminal.Plural(l.Items, "item"), l.Answered, sure(l.Interval))
		}
		fmt.Fprintf(w, "depth\t%.2f\tlevels of an answer, of %.2f expected; hierarchical F1 %.4f, precision %.4f, recall %.4f\n", t.Depth, t.ExpectedDepth, t.F1, t.Precision, t.Recall)
	}
	fmt.Fprintf(w, "agreement\t%.4f\tmean share of the votes for the answer\n", r.Agreement)
}

// unknown writes how well out-of-scope items are detected.
func unknown(w io.Writer, s *eval.Scope, c *eval.Calibration) {
	if s == nil || c == nil {
		return
	}
	by := fmt.Sprintf("%.4f\tAUROC of the %s, by which items out of scope are found", c.DoubtAUROC, c.Measured)
	if c.UnknownAUROC > 0 {
		by = fmt.Sprintf("%.4f\tAUROC by which items out of scope are found; of the %s %.4f", c.UnknownAUROC, c.Measured, c.DoubtAUROC)
	}
	fmt.Fprintf(w, "unknown\t%s\n", by)
	fmt.Fprintf(w, "caught\t%.4f\tof the items out of scope are flagged or left without an answer, and %.4f of those in scope\n", s.Caught, s.Alarms)
}

func sure(i eval.Interval) string { return "95 % interval " + between(i) }

func between(i eval.Interval) string { return fmt.Sprintf("%.4f to %.4f", i.Low, i.High) }

// confidence writes how well the confidence is calibrated.
func confidence(w io.Writer, c *eval.Calibration) {
	fmt.Fprintf(w, "ECE\t%.4f\tof the %s; perfectly calibrated ones have up to %.4f by chance\n", c.ECE, c.Measured, c.Chance)
	fmt.Fprintf(w, "NLL\t%.4f\tof whether the answer is right; Brier score %.4f\n", c.NLL, c.Brier)
}

// flags writes how many errors the flag rule catches, and how many false alarms it makes.
func flags(w io.Writer, f eval.Flags) {
	if f.Flagged > 0 {
		fmt.Fprintf(w, "flags\t%d\tof %s caught; %d of %s are false alarms\n", f.Caught, terminal.Plural(f.Errors, "error"), f.Right, terminal.Plural(f.Flagged, "flagged item"))
	}
}

// promised writes whether the guaranteed accuracy was reached.
func promised(w io.Writer, r eval.Report) {
	p := r.Promised
	if p == nil || r.Scored == 0 {
		return
	}
	row := func(name string, right, of int, what string, i eval.Interval, atLeast float64) {
		verdict := ""
		if of > 0 && i.High < atLeast {
			verdict = ": broken"
		}
		fmt.Fprintf(w, "%s\t%.4f\tof %d %s; %s; at least %v was guaranteed%s\n", name, share(right, of), of, what, sure(i), atLeast, verdict)
	}
	row("guarantee", p.Right, p.Answered, fmt.Sprintf("answers without a flag (%.0f %% of the items)", 100*share(p.Answered, r.Scored)), p.Interval, p.Accuracy)
	if p.Exceeded {
		fmt.Fprintf(w, "out of scope\t%.4f\tof the items: the guarantee holds up to %v\n", share(p.Outside, r.Scored), p.Unknown)
	}
	if p.Caught > 0 && p.Outside > 0 {
		row("out of scope", p.CaughtOf, p.Outside, "items flagged or left without an answer", p.CaughtInterval, p.Caught)
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// coverage writes the accuracy among the surest items.
func coverage(w io.Writer, c *eval.Calibration) {
	row := func(name string, cell func(eval.Coverage) string) {
		fmt.Fprint(w, name)
		for _, point := range c.Coverage {
			fmt.Fprintf(w, "\t%s", cell(point))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	row("SUREST", func(p eval.Coverage) string { return fmt.Sprintf("%.0f %%", 100*p.Share) })
	row("accuracy", func(p eval.Coverage) string { return fmt.Sprintf("%.4f", p.Accuracy) })
	row(c.Measured+" from", func(p eval.Coverage) string { return fmt.Sprintf("%.4f", p.Confidence) })
}

// voters writes the figures of each voter.
func voters(w io.Writer, all []eval.Voter, scored int) {
	weighed, partly := false, false
	for _, v := range all {
		weighed, partly = weighed || v.Weight != nil, partly || v.Asked < scored
	}
	fmt.Fprintf(w, "\nVOTER\tASKED\tACCURACY ALONE\t95 %% INTERVAL\tANSWERED\tACCEPTABLE")
	if weighed {
		fmt.Fprint(w, "\tWEIGHT")
	}
	for _, v := range all {
		fmt.Fprintf(w, "\n%s\t%d of %d\t%.4f\t%s\t%.1f %%\t%.1f %% of %d", v.Name, v.Asked, scored, v.Accuracy, between(v.AccuracyInterval), 100*v.Accepted, 100*v.Acceptable, v.Answers)
		if v.Weight != nil {
			fmt.Fprintf(w, "\t%.3f", *v.Weight)
		}
		if v.Leads {
			fmt.Fprint(w, ", leads")
		}
	}
	fmt.Fprintln(w)
	if len(all) < 2 {
		return
	}
	fmt.Fprintf(w, "\nPOINTS [95 %%]\tALONE, AGAINST THE ELECTION\tWHAT IT ADDS TO THE ELECTION\n")
	for _, v := range all {
		adds := "-"
		if v.Adds != nil {
			adds = points(*v.Adds)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, points(v.Alone), adds)
	}
	if partly {
		fmt.Fprintln(w, "figures of a voter are of the items that it was asked about")
	}
	var harm []string
	for _, v := range all {
		switch {
		case v.Alone.Interval().Low > 0:
			fmt.Fprintf(w, "warning: %s\n", lead(v, scored))
		case v.Alone.Gained > v.Alone.Lost:
			fmt.Fprintf(w, "%s, which may be chance\n", lead(v, scored))
		}
		if v.Adds != nil && v.Adds.Interval().High < 0 {
			harm = append(harm, v.Name)
		}
	}
	if len(harm) > 0 {
		fmt.Fprintf(w, "warning: the election would be better without %s\n", strings.Join(harm, ", or without "))
	}
}

// points writes a difference of accuracies with its interval, in hundredths.
func points(p eval.Paired) string {
	i := p.Interval()
	return fmt.Sprintf("%+.1f [%.1f, %.1f]", 100*p.Difference(), 100*i.Low, 100*i.High)
}

// lead describes by how much a voter alone is better than the election.
func lead(v eval.Voter, scored int) string {
	i, of := v.Alone.Interval(), ""
	if v.Asked < scored {
		of = fmt.Sprintf(" on %d of %d items", v.Asked, scored)
	}
	return fmt.Sprintf("%s alone is right on %.1f points more than the election [%.1f, %.1f]%s", v.Name, 100*v.Alone.Difference(), 100*i.Low, 100*i.High, of)
}

// Limits of shown lines, unless Asking.Whole is set: a passage of at most shortLines is shown whole, a longer passage
// as excerptLines around the best sentence.
const shortLines, excerptLines = 6, 4

// Asking has the options for showing the outcome of one question.
type Asking struct {
	Width    int    // columns of the terminal
	Passages int    // maximum number of passages if there is no answer
	More     string // how to see all of n passages, with %d for n
	Whole    bool   // show passages with all of their text
	Bold     bool   // make matches bold with escape sequences
	// Terms finds the matching words; nil: no words are marked.
	Terms *eval.QuestionTerms
}

// Ask writes the outcome of one question: the answer with the cited passages, or the reason why
// there is no answer, with the nearest passages.
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
	}
	if r.Answer == "" || r.Failure != nil {
		a.passages(out, r)
	}
	return out.Flush()
}

// why returns why there is no answer and, if no vote counts, why not.
func why(r outcome.Result) string {
	text := r.Reason
	if i := slices.IndexFunc(r.Votes, func(v result.Vote) bool { return !v.Accepted && v.Reason != "" }); i >= 0 && !slices.ContainsFunc(r.Votes, func(v result.Vote) bool { return v.Accepted }) {
		text += fmt.Sprintf(" (%s: %s)", r.Votes[i].Voter, r.Votes[i].Reason)
	}
	return strings.Join(strings.Fields(text), " ")
}

// remark writes the confidence of an election with several votes.
func (a Asking) remark(w io.Writer, r outcome.Result) {
	if len(r.Votes) < 2 && !r.Flagged {
		return
	}
	text := fmt.Sprintf("(agreement %.0f %%", 100*r.Agreement)
	if r.Confidence > 0 {
		text = fmt.Sprintf("(confidence %s, agreement %.0f %%", probability(r.Confidence), 100*r.Agreement)
	}
	if r.Flagged {
		text += ", flagged"
	}
	fmt.Fprintln(w, text+")")
	if r.Confidence > 0 && r.Form == (sdk.LabelForm{}) {
		for _, l := range r.Labels[min(1, len(r.Labels)):min(1+runnersUp, len(r.Labels))] {
			fmt.Fprintf(w, "%6s  %s\n", probability(l.Confidence), terminal.Fit(l.Label, a.Width-8))
		}
	}
}

// runnersUp is how many labels are shown after the answer.
const runnersUp = 3

func probability(p float64) string {
	if p < .005 {
		return "< 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}

// passages writes the nearest passages.
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

// passage writes a candidate's place, and its text around the best sentence.
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

// where returns a candidate's place, followed by its heading, declaration or title. A title that
// equals the file's name is left out, because the place contains it.
func where(c sdk.Candidate) string {
	text := func(key string) string { s, _ := c.Meta[key].(string); return s }
	place := output.Place(c)
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

// excerpt returns a few lines of a candidate's text, or all lines if they are few or if all are wanted. Unless all
// lines are wanted, it leaves out leading headings that the place already shows.
func (a Asking) excerpt(c sdk.Candidate, width int) []string {
	text := printed.Replace(c.Text)
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
	lines, all, place := sentences(text, width-mark)
	if len(lines) <= shortLines {
		return lines
	}
	at := 0
	if a.Terms != nil {
		best := place[a.Terms.Best(all)]
		if best[1]-best[0] >= excerptLines {
			best[0] += a.Terms.Best(lines[best[0] : best[1]+1])
			best[1] = best[0]
		}
		if at = best[0]; !strings.HasPrefix(lines[at], "#") { // show the text below a heading
			at = min(at, (at+best[1]+1-excerptLines)/2)
		}
	}
	at = max(0, min(at, len(lines)-excerptLines))
	shown := slices.Clone(lines[at : at+excerptLines])
	if at > 0 {
		shown[0] = "… " + shown[0]
	}
	if at+excerptLines < len(lines) {
		shown[excerptLines-1] = terminal.Fit(shown[excerptLines-1]+" …", width)
	}
	return shown
}

// printed removes invisible characters, and replaces form feeds, which separate the pages of a PDF, by
// line ends.
var printed = strings.NewReplacer("\f", "\n", "\u00AD", "", "\u200B", "", "\u2060", "", "\uFEFF", "")

// sentence matches a sentence of a paragraph.
var sentence = regexp.MustCompile(`.+?(?:[.!?…]+ +|[。！？]+|$)`)

// sentences wraps a text into lines. It returns the lines, and the sentences with their first and
// last lines.
func sentences(text string, width int) (lines, all []string, at [][2]int) {
	for paragraph := range strings.Lines(text) {
		wrapped := slices.DeleteFunc(terminal.Wrap(paragraph, width), func(line string) bool { return line == "" })
		lineOf := func(offset int) int {
			n := 0
			for ; n < len(wrapped)-1 && offset > len(wrapped[n]); n++ {
				offset -= len(wrapped[n]) + 1
			}
			return len(lines) + n
		}
		joined := strings.Join(wrapped, " ")
		for _, is := range sentence.FindAllStringIndex(joined, -1) {
			all, at = append(all, joined[is[0]:is[1]]), append(at, [2]int{lineOf(is[0]), lineOf(is[1] - 1)})
		}
		lines = append(lines, wrapped...)
	}
	return lines, all, at
}

const (
	maxConfused  = 10  // maximum of confused pairs of labels
	mistakeWidth = 100 // columns of a text
)

// confused writes the pairs of labels that are confused.
func confused(w io.Writer, r *eval.Report) {
	pairs, names := r.Confused, map[string]string{}
	if len(pairs) == 0 {
		return
	}
	for _, l := range r.Labels {
		names[l.Label] = l.Name
	}
	fmt.Fprintf(w, "\nEXPECTED\tANSWERED INSTEAD\tITEMS\n")
	for _, pair := range pairs[:min(len(pairs), maxConfused)] {
		expected := titled(pair.Expected, names[pair.Expected])
		if pair.Expected == "" { // for sets: a label too many
			expected = "none"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\n", expected, answered(pair.Answered, names[pair.Answered]), pair.Items)
	}
	if more := len(pairs) - maxConfused; more > 0 {
		fmt.Fprintf(w, "... and %s more; --json has them all\n", terminal.Plural(more, "pair"))
	}
}

func answered(label, name string) string {
	if label == "" {
		return "no answer"
	}
	return titled(label, name)
}

// titled returns a label with its name for people, if it has one.
func titled(label, name string) string {
	if name != "" {
		label += " (" + name + ")"
	}
	return terminal.Shorten(label, valueWidth)
}

// mistakes writes the wrong answers with the highest confidence.
func mistakes(w io.Writer, all []eval.Mistake) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "\nERRORS (the surest first)"); err != nil {
		return err
	}
	for _, m := range all {
		said := answered(m.Answer, "")
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
