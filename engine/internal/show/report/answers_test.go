package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// passage is a candidate of a document.
func passage(id, text string, meta sdk.Meta) sdk.Candidate {
	return sdk.Candidate{ID: id, Text: text, Meta: meta, Score: .5}
}

func TestAsk(t *testing.T) {
	guide := passage("guide.md#0", "# Guide\n\n## Set-up\n\nOpen the port.\nIt is 8080.\n", sdk.Meta{
		"path": "guide.md", "format": "markdown", "headings": "Guide > Set-up", "first_line": 3.0, "last_line": 6.0})
	tests := []struct {
		name   string
		result outcome.Result
		want   []string
		not    []string
	}{
		{name: "passages", result: outcome.Result{RetrievalOnly: true, Text: "port", Candidates: []sdk.Candidate{guide, guide, guide}},
			want: []string{" 1  0.500  guide.md:3-6  Guide > Set-up\n    Open the port. It is 8080.\n", "... and 1 more; --passages 3 shows them\n"}, not: []string{"# Guide", "Nearest"}},
		{name: "nothing found", result: outcome.Result{RetrievalOnly: true}, want: []string{"No passage was found.\n"}},
		{name: "an answer", result: outcome.Result{Answer: "8080", Candidates: []sdk.Candidate{guide}}, want: []string{"8080\n"}, not: []string{"guide.md", "agreement"}},
		{name: "sources", result: outcome.Result{Text: "port", Answer: "It is 8080 [2].", Citations: []outcome.Citation{{Number: 2, Passage: guide}}, Candidates: []sdk.Candidate{guide, guide}},
			want: []string{"It is 8080 [2].\n\n[2]  guide.md:3-6  Guide > Set-up\n    Open the port. It is 8080.\n"}, not: []string{"Nearest", "0.500"}},
		{name: "an election that estimates labels", result: outcome.Result{Answer: "yes", Verdict: result.Verdict{Agreement: .5, Confidence: .9, Labels: []sdk.LabelConfidence{{Label: "yes", Confidence: .9}, {Label: "no", Confidence: .08}, {Label: "perhaps", Confidence: .001}}}, Votes: make([]result.Vote, 3)}, want: []string{"yes\n(confidence 90 %, agreement 50 %)\n   8 %  no\n < 1 %  perhaps\n"}},
		{name: "an election", result: outcome.Result{Answer: "yes", Verdict: result.Verdict{Agreement: .5, Flagged: true}, Votes: make([]result.Vote, 3)}, want: []string{"yes\n(agreement 50 %, flagged)\n"}},
		{name: "no answer", result: outcome.Result{Verdict: result.Verdict{Reason: "none of the answers\ncites"}, Candidates: []sdk.Candidate{guide}}, want: []string{"No answer: none of the answers cites\n\nNearest passages:\n\n 1  0.500  guide.md:3-6"}},
		{name: "why", result: outcome.Result{Verdict: result.Verdict{Reason: "no answer counts"}, Votes: []result.Vote{{Voter: "llm", Answer: "x", Reason: "it cites\nnothing"}}}, want: []string{"No answer: no answer counts (llm: it cites nothing)\n"}},
		{name: "a failure", result: outcome.Result{Failure: &outcome.Failure{Err: errors.New("x")}, Candidates: []sdk.Candidate{guide}}, want: []string{"Nearest passages:\n\n 1  "}, not: []string{"No answer"}},
		{name: "a row", result: outcome.Result{RetrievalOnly: true, Candidates: []sdk.Candidate{passage("row-7", "a card", nil)}}, want: []string{" 1  0.500  row-7\n    a card\n"}},
		{name: "a page", result: outcome.Result{RetrievalOnly: true, Candidates: []sdk.Candidate{passage("a.pdf#1", "text", sdk.Meta{"path": "a.pdf", "title": "Fees", "first_page": 2.0, "last_page": 3.0})}}, want: []string{"a.pdf, pages 2-3  Fees\n"}},
		{name: "pages", result: outcome.Result{RetrievalOnly: true, Candidates: []sdk.Candidate{passage("in/a.pdf#0", "One page.\n\fAnother.", sdk.Meta{"path": "in/a.pdf", "title": "a.pdf", "first_page": 1.0, "last_page": 2.0})}},
			want: []string{"in/a.pdf, pages 1-2\n    One page.\n    Another.\n"}},
		{name: "hostile", result: outcome.Result{RetrievalOnly: true, Candidates: []sdk.Candidate{
			passage("x", "\x1b]0;title\x07\x9b31m\rgone", sdk.Meta{"path": "a\x1b[2J.md", "title": "t\n\x1b[H"})}},
			want: []string{"a\uFFFD[2J.md  t \uFFFD[H\n    \uFFFD]0;title\uFFFD\uFFFD31m\uFFFDgone\n"}},
		{name: "a hostile answer", result: outcome.Result{Answer: "8080\x1b[31m\nsecond"}, want: []string{"8080\uFFFD[31m\nsecond\n"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := Ask(&out, test.result, Asking{Width: 60, Passages: 2, More: "--passages %d shows them"}); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
			for _, not := range test.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is in\n%s", not, out.String())
				}
			}
			if i := strings.IndexFunc(out.String(), func(r rune) bool { return terminal.Visible(string(r), "\n") != string(r) }); i >= 0 {
				t.Errorf("the terminal is told %q", out.String()[i:])
			}
		})
	}
}

// The lines around the sentence with most of the question's words are shown; short passages are shown whole.
func TestExcerpt(t *testing.T) {
	text := strings.Repeat("Nothing to see here at all. ", 20) + "The port is 8080 by default. " + strings.Repeat("Something else follows now. ", 20)
	c := passage("a", text, nil)
	a := Asking{Terms: eval.QuestionTermsOf("which port by default?", "english", []sdk.Candidate{c})}
	lines := a.excerpt(c, 40)
	if len(lines) != excerptLines || !strings.Contains(strings.Join(lines, " "), "port is 8080") || !strings.HasPrefix(lines[0], "… ") || !strings.HasSuffix(lines[excerptLines-1], " …") {
		t.Errorf("%q", lines)
	}
	if strings.HasPrefix(lines[0], "… The port") || strings.HasSuffix(lines[excerptLines-1], "default. …") {
		t.Errorf("the sentence is not in the middle of %q", lines)
	}
	if got := a.excerpt(passage("a", "Haft\u00ADpflicht\fcon\u200Bfig \uFEFFx", nil), 40); !slices.Equal(got, []string{"Haftpflicht config x"}) {
		t.Errorf("what is not seen is shown: %q", got)
	}
	for text, most := range map[string]int{
		strings.Repeat("Nothing to see here at all.\n\n", shortLines):                                                                          shortLines,
		"The port is 8080.\n\n" + strings.Repeat("Nothing to see here at all.\n\n", 20):                                                        excerptLines,
		strings.Repeat("Nothing to see here at all.\n\n", 20) + "The port is 8080.":                                                            excerptLines,
		strings.Repeat("Nothing to see here at all, but", 20) + " The port is, by what default " + strings.Repeat("there is ", 90) + ", 8080.": excerptLines,
		strings.Repeat("这里没有什么。", 60) + "The port is 8080。" + strings.Repeat("这里没有什么。", 60):                                                    excerptLines,
	} {
		lines := a.excerpt(passage("a", text, nil), 40)
		if len(lines) != most || strings.Contains(text, "port") && !strings.Contains(strings.Join(lines, " "), "port") {
			t.Errorf("%d lines of %.60q: %q", len(lines), text, lines)
		}
	}
	for _, line := range lines {
		if terminal.Width(line) > 40 {
			t.Errorf("%q is too long", line)
		}
	}
}

// Matches are bold if the terminal supports it, in whole passages, too.
func TestAskMarks(t *testing.T) {
	c := passage("a.md#0", "# Ports\n\nThe daemons open "+strings.Repeat("many other things and ", 20)+"a port.", sdk.Meta{"path": "a.md", "headings": "Ports"})
	r := outcome.Result{RetrievalOnly: true, Text: "port of a daemon", Candidates: []sdk.Candidate{c}}
	terms := eval.QuestionTermsOf(r.Text, "english", r.Candidates)
	for name, test := range map[string]struct {
		asking    Asking
		want, not []string
	}{
		"whole": {Asking{Whole: true}, []string{"# Ports\n", "The daemons open", "a port.\n"}, []string{"\x1b", "…"}},
		"bold":  {Asking{Whole: true, Bold: true}, []string{"# \x1b[1mPorts\x1b[22m\n", "The \x1b[1mdaemons\x1b[22m open", "a \x1b[1mport\x1b[22m.\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.asking.Width, test.asking.Passages, test.asking.Terms = 60, 1, terms
			var out strings.Builder
			if err := Ask(&out, r, test.asking); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
			for _, not := range test.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is in\n%s", not, out.String())
				}
			}
		})
	}
}

// TestMistakes: confused pairs, and mistakes with the neighbours that support them. Control
// characters are removed.
func TestMistakes(t *testing.T) {
	r := eval.Report{
		Scored:   20,
		Confused: []eval.Confused{{Expected: "card_lost", Answered: "card_stolen", Items: 3}, {Expected: "card_lost", Items: 2}},
		Errors: []eval.Mistake{
			{Line: 4, ID: "q3", Text: "where is\nmy card\x1b[2J", Expected: "card_lost", Answer: "card_stolen", Confidence: .9312, Flagged: true, Neighbours: []eval.Neighbour{
				{ID: "r17", Label: "card_stolen", Score: .8125, Text: "my card\x07 was stolen"}}},
			{Line: 5, ID: "q4", Text: "hm", Expected: "card_lost", Answer: "top_up", Agreement: .5},
			{Line: 6, ID: "q5", Text: "hm", Expected: "card_lost", Reason: "no voter answered"},
			{Line: 7, ID: "q6", Text: "hm", Expected: "card_lost", Error: "sample.llm: down"},
		},
	}
	for i := range 9 {
		r.Confused = append(r.Confused, eval.Confused{Expected: fmt.Sprint("label", i), Answered: "top_up", Items: 1})
	}
	var out strings.Builder
	if err := Eval(&out, r); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "BUSY (s)\n")
	if d := cmp.Diff(mistaken, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

const mistaken = `
EXPECTED   ANSWERED INSTEAD  ITEMS
card_lost  card_stolen       3
card_lost  no answer         2
label0     top_up            1
label1     top_up            1
label2     top_up            1
label3     top_up            1
label4     top_up            1
label5     top_up            1
label6     top_up            1
label7     top_up            1
... and 1 pair more; --json has them all

LABEL (worst first)  F1  PRECISION  RECALL  ITEMS

ERRORS (the surest first)

q3 (line 4): where is my card�[2J
  expected  card_lost
  answered  card_stolen, confidence 0.9312, flagged
    0.8125  r17: my card� was stolen

q4 (line 5): hm
  expected  card_lost
  answered  top_up, agreement 0.5000

q5 (line 6): hm
  expected  card_lost
  answered  no answer: no voter answered

q6 (line 7): hm
  expected  card_lost
  answered  failed: sample.llm: down
`
