package report_test

import (
	"encoding/xml"
	"os"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/workspace/expect"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// expected has a verdict of each kind, with texts that a terminal or an XML reader would interpret.
func expected() []*expect.Report {
	return []*expect.Report{{
		File: "a.hcl", Pipeline: "p",
		Verdicts: []expect.Verdict{
			{Name: "good", Rule: "accuracy >= 0.5\n  and leaked == 0", Line: 3, Outcome: expect.Holds, Figures: []expect.Figure{
				{Figure: "accuracy", Value: 0.75, Interval: &eval.Interval{Low: 0.3, High: 0.95}, Count: 3, Of: 4}, {Figure: "leaked", Value: 0.},
			}},
			{Name: "bad", Description: "Why \x1b[31mnot", Rule: `answer("<script>") == "]]>"`, Line: 9, Outcome: expect.Fails, Figures: []expect.Figure{
				{Figure: `answer("<script>")`, Value: "\x1b[2J\u202e\x00evil & \"<b>\"", Note: "a\nnote", Needs: []string{"something else"}},
			}},
			{Name: "none", Rule: "ndcg > 0", Line: 12, Outcome: expect.Fails, Figures: []expect.Figure{{Figure: "ndcg", Error: "no gold"}}, Reason: "ndcg cannot be measured: no gold"},
			{Name: "off", Rule: "f1 > 0", Line: 15, Outcome: expect.Skipped},
		},
		Baseline: &expect.Baseline{Run: "run-000001", Paired: eval.Paired{Items: 20, Lost: 8}, Worse: true, Lost: []string{"a\x1b", "b"}, Missing: 1, Relabelled: 2},
	}}
}

func TestExpect(t *testing.T) {
	var b strings.Builder
	if err := report.Expect(&b, expected()[0]); err != nil {
		t.Fatal(err)
	}
	if err := report.Expected(&b, expected()); err != nil {
		t.Fatal(err)
	}
	want := `a.hcl, pipeline "p"
ok     good      accuracy >= 0.5 and leaked == 0
                 accuracy: 0.750 (0.300 to 0.950), 3 of 4
                 leaked: 0
FAILS  bad       answer("<script>") == "]]>"
                 answer("<script>"): "�[2J��evil & "<b>""; a note
                 something else
                 Why �[31mnot
FAILS  none      ndcg > 0
                 ndcg: not measured
                 ndcg cannot be measured: no gold
off    off       f1 > 0
                 enabled is false
FAILS  baseline  not worse than run-000001
                 8 lost, 0 gained of 20: -0.400 (-0.613 to -0.174); McNemar's exact test: p = 0.00781
                 worse by more than chance explains: p is below 0.05
                 lost: a\u001b, b, ...
                 1 item left out that the run has not answered
                 2 items left out whose label has changed

1 of 3 hold, 1 off; worse than the baseline
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestJUnit: the output is valid XML with any texts, and has the outcome of each expectation.
func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := report.JUnit(&b, expected()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suite    struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Line    int    `xml:"line,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
					Text    string `xml:",chardata"`
				} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
				Out     string    `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	must.Equal(t, "suites", []any{5, 3, 1, "a.hcl p", 5}, []any{got.Tests, got.Failures, got.Skipped, got.Suite.Name, len(got.Suite.Cases)})
	for i, want := range []struct {
		name          string
		line          int
		fails         string
		skipped, says bool
	}{
		{"good", 3, "", false, true}, {"bad", 9, `answer("<script>") == "]]>": `, false, false}, {"none", 12, "cannot be measured", false, false},
		{"off", 15, "", true, false}, {"baseline run-000001", 0, "8 lost, 0 gained", false, false},
	} {
		c := got.Suite.Cases[i]
		must.Equal(t, want.name, []any{want.name, want.line, want.fails != "", want.skipped, want.says}, []any{c.Name, c.Line, c.Failure != nil, c.Skipped != nil, c.Out != ""})
		if c.Failure != nil && (!strings.Contains(c.Failure.Message, want.fails) || c.Failure.Text == "") {
			t.Errorf("%+v", c.Failure)
		}
	}
}

// TestFiguresAreDocumented: the manual names every figure that rules can name.
func TestFiguresAreDocumented(t *testing.T) {
	manual, err := os.ReadFile("../../../../pipelines/measuring.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "\n## Expectations\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, n := range rule.Described(rule.Expectation) {
		names = append(names, n.Name)
	}
	for _, f := range rule.Functions(rule.Expectation) {
		if f.Form != "" {
			names = append(names, f.Form)
		}
	}
	for _, name := range names {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("%s is missing", name)
		}
	}
	if len(names) < 16 {
		t.Errorf("only %q", names)
	}
}

// TestDoctor: each finding begins at the margin, its rows and advice are indented, and no label looks like a line.
func TestDoctor(t *testing.T) {
	var b strings.Builder
	r := doctor.Report{Rows: 2, Findings: []doctor.Finding{
		{Check: "spelling", Severity: doctor.Error, Message: "one", Advice: "write one", Rows: []doctor.Place{{File: "a.tsv", Line: 2, Text: "text", Label: "x\nerror: y", Proposal: "x"}}},
		{Check: "copies", Severity: doctor.Info, Message: "two", Advice: "leave one"},
	}}
	if err := report.Doctor(&b, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	want := []string{"error: one (spelling)", `    a.tsv:2  "text"  x`, "  write one", "", "info: two (copies)", "  leave one", "", "2 rows of knowledge and 0 items of the input looked at: 2 findings", ""}
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) || line != want[i] && i != 1 {
			t.Errorf("line %d is %q, want %q", i, line, want[i])
		}
	}
}
