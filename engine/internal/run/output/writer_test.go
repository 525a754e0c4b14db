package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// some returns results: answered, undecided, failed, and of a retrieval.
func some() []outcome.Result {
	votes := []result.Vote{{Voter: "llm", Answer: "a", Weight: 1, Accepted: true}, {Voter: "llm", Answer: "?", Weight: 1}}
	for _, label := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		votes = append(votes, result.Vote{Voter: "knn", Answer: label, Weight: 1.0 / 7, Accepted: true})
	}
	return []outcome.Result{
		{Line: 2, ID: "1", Text: "tab\there, <b> & \"quotes\"", Answer: "a", Verdict: result.Verdict{Agreement: 2.0 / 3}, Votes: votes},
		{Line: 3, ID: "2", Text: "nothing", Expected: "b", Verdict: result.Verdict{Flagged: true, Reason: "no voter gave an acceptable answer"}},
		{Line: 4, ID: "3", Text: "bad \xff", Failure: &outcome.Failure{Stage: "sample.llm", Err: errors.New("busy\nagain")}},
		{Line: 5, ID: "4", Text: "find", RetrievalOnly: true, Candidates: []sdk.Candidate{
			{ID: "c1", Text: "found", Score: .5, Dense: .25, Lexical: sdk.Unscored, Meta: sdk.Meta{"page": 3.0}}}},
	}
}

func render(t *testing.T, format string, results []outcome.Result) string {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, format, Options{More: "--output FILE keeps them all"})
	must.Do(t, err)
	for _, r := range results {
		must.Do(t, w.Write(r))
	}
	must.Do(t, w.Close())
	return out.String()
}

// A model's vote has how it was parsed, its reason, and the model.
func TestVoteOfModel(t *testing.T) {
	result := outcome.Result{Line: 2, ID: "1", Text: "x", Answer: "a", Verdict: result.Verdict{Agreement: 1}, Votes: []result.Vote{
		{Voter: "llm", Answer: "a", Weight: 1, Accepted: true, Reading: "without markup", Explanation: "because\nof b", Model: "m-2"},
	}}
	want := `{"id":"1","text":"x","answer":"a","agreement":1,"flagged":false,"votes":[{"voter":"llm","answer":"a","weight":1,"accepted":true,` +
		`"reading":"without markup","explanation":"because\nof b","model":"m-2"}]}` + "\n"
	if d := cmp.Diff(want, render(t, JSONL, []outcome.Result{result})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestJSONL(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(render(t, JSONL, some())), "\n")
	want := []string{
		`{"id":"1","text":"tab\there, <b> & \"quotes\"","answer":"a","agreement":0.666667,"runner_up":"b","flagged":false,"votes":[` +
			`{"voter":"llm","answer":"a","weight":1,"accepted":true},{"voter":"llm","answer":"?","weight":1,"accepted":false},` +
			`{"voter":"knn","answer":"a","weight":0.142857,"accepted":true},{"voter":"knn","answer":"b","weight":0.142857,"accepted":true},` +
			`{"voter":"knn","answer":"c","weight":0.142857,"accepted":true},{"voter":"knn","answer":"d","weight":0.142857,"accepted":true},` +
			`{"voter":"knn","answer":"e","weight":0.142857,"accepted":true}]}`,
		`{"id":"2","text":"nothing","expected":"b","answer":null,"agreement":0,"flagged":true,"reason":"no voter gave an acceptable answer","votes":[]}`,
		`{"id":"3","text":"bad ` + "\uFFFD" + `","answer":null,"agreement":0,"flagged":false,"votes":[],"error":{"line":4,"stage":"sample.llm","message":"busy\nagain"}}`,
		`{"id":"4","text":"find","answer":null,"agreement":0,"flagged":false,"votes":[],"candidates":[{"id":"c1","text":"found","score":0.5,"dense":0.25,"meta":{"page":3}}]}`,
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

const tsvHeader = "id\ttext\tanswer\tagreement\tconfidence\tunknown\trunner_up\tflagged\treason\terror\tcitations\tcandidates\tmissing\n"

func TestTSV(t *testing.T) {
	want := tsvHeader +
		"1\ttab\\there, <b> & \"quotes\"\ta\t0.6667\t\t\tb\tfalse\t\t\t\t\t\n" +
		"2\tnothing\t\t0.0000\t\t\t\ttrue\tno voter gave an acceptable answer\t\t\t\t\n" +
		"3\tbad \uFFFD\t\t0.0000\t\t\t\tfalse\t\tline 4: sample.llm: busy\\nagain\t\t\t\n" +
		"4\tfind\t\t0.0000\t\t\t\tfalse\t\t\t\tc1\t\n"
	if d := cmp.Diff(want, render(t, TSV, some()[:4])); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTSVIsOneLine puts line ends and control characters into every field, and reads the line
// again.
func TestTSVIsOneLine(t *testing.T) {
	var hostile strings.Builder
	for r := range rune(0x100) {
		hostile.WriteRune(r)
	}
	hostile.WriteString(`C:\new\` + "\u2028\u2029\u202e")
	text := hostile.String()
	got := render(t, TSV, []outcome.Result{
		{ID: text, Text: text, Answer: text, Citations: []outcome.Citation{{Number: 1, Passage: sdk.Candidate{ID: text}}}},
		{ID: text, Text: text, Failure: &outcome.Failure{Stage: "s", Err: errors.New(text)}},
		{ID: text, Text: text, RetrievalOnly: true, Candidates: []sdk.Candidate{{ID: text}}},
	})
	for _, r := range got {
		if r != '\t' && r != '\n' && (unicode.IsControl(r) || strings.ContainsRune("\u2028\u2029\u202e", r)) {
			t.Errorf("%q is in the output", r)
		}
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 13 {
			t.Errorf("%d fields in %q", len(fields), line)
		}
		if line == lines[0] {
			continue
		}
		for _, field := range fields[:2] {
			if again, err := strconv.Unquote(`"` + strings.ReplaceAll(field, `"`, `\"`) + `"`); err != nil || again != text {
				t.Errorf("%q reads as %q, %v", field, again, err)
			}
		}
	}
	if plain := `grüße, "quoted" 日本`; terminal.Escape(plain) != plain {
		t.Errorf("%q becomes %q", plain, terminal.Escape(plain))
	}
}

func TestTable(t *testing.T) {
	results := some()
	for range 20 {
		results = append(results, outcome.Result{Text: strings.Repeat("é", 100), Answer: "a", Verdict: result.Verdict{Agreement: 1}, Expected: "b"})
	}
	got := render(t, Table, results)
	for _, want := range []string{
		"TEXT ", "tab here, <b> & \"quotes\"  ", " 67 %", "no voter gave an acceptable answer, flagged",
		"line 4 failed: sample.llm: busy", "c1", strings.Repeat("é", 63) + "…", "expected b", "... and 12 more; --output FILE keeps them all\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 1+12+1 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

func TestTableIsShownAndNotObeyed(t *testing.T) {
	const hostile = "\x1b]0;title\a\u009b2J\u202e\x00"
	got := render(t, Table, []outcome.Result{
		{Text: hostile, Answer: hostile, Expected: hostile + "x"},
		{Text: "a", RetrievalOnly: true, Candidates: []sdk.Candidate{{ID: hostile}}},
		{Text: "a", Failure: &outcome.Failure{Stage: "s", Err: errors.New(hostile)}},
	})
	if strings.ContainsAny(got, hostile[:1]+"\a\u009b\u202e\x00") || strings.Count(got, "\uFFFD]0;title\uFFFD") != 5 {
		t.Errorf("got %q", got)
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := NewWriter(&bytes.Buffer{}, "xml", Options{}); err == nil || !strings.Contains(err.Error(), "jsonl, tsv, csv, parquet or table") {
		t.Errorf("got %v", err)
	}
}

// A text with citations stays in its line and its cell.
func TestCitedAnswers(t *testing.T) {
	result := outcome.Result{Line: 2, ID: "1", Text: "which port?", Answer: "Port 80 [2],\n\nor\t81 [1].\x1b[31m", Verdict: result.Verdict{Agreement: 1}, Citations: []outcome.Citation{
		{Number: 2, Passage: sdk.Candidate{ID: "a#1", Text: "long", Score: 1, Meta: sdk.Meta{"path": "a\n.md", "title": "A", "headings": "Use > Ports", "first_line": 3.0, "last_line": 9.0, "format": "md"}}},
		{Number: 1, Passage: sdk.Candidate{ID: "b.pdf#4", Meta: sdk.Meta{"path": "b.pdf", "first_page": 2.0, "last_page": 3.0}}},
		{Number: 3, Passage: sdk.Candidate{ID: "17"}},
	}}
	want := map[string]string{
		JSONL: `{"id":"1","text":"which port?","answer":"Port 80 [2],\n\nor\t81 [1].\u001b[31m","agreement":1,"flagged":false,"citations":[` +
			`{"number":2,"id":"a#1","path":"a\n.md","title":"A","headings":"Use > Ports","first_line":3,"last_line":9},` +
			`{"number":1,"id":"b.pdf#4","path":"b.pdf","first_page":2,"last_page":3},{"number":3,"id":"17"}],"votes":[]}` + "\n",
		TSV: tsvHeader +
			"1\twhich port?\tPort 80 [2],\\n\\nor\\t81 [1].\\u001b[31m\t1.0000\t\t\t\tfalse\t\t\t[2] a\\n.md:3-9; [1] b.pdf, pages 2-3; [3] 17\t\t\n",
		Table: "TEXT         ANSWER                        AGREEMENT  \n" +
			"which port?  Port 80 [2], or 81 [1].\uFFFD[31m  100 %      [2] a .md:3-9; [1] b.pdf, pages 2-3; [3] 17\n",
	}
	for format, want := range want {
		if d := cmp.Diff(want, render(t, format, []outcome.Result{result})); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
}

// Only an election that estimates confidence shows it. A confidence of nearly 0 is shown, too.
func TestLeastConfidence(t *testing.T) {
	for confidence, want := range map[float64]float64{0: 0, 1e-9: 1e-6, .8765432109: .876543} {
		if got := Of(outcome.Result{Answer: "a", Verdict: result.Verdict{Confidence: confidence}}).Confidence; got != want {
			t.Errorf("%v is written as %v, want %v", confidence, got, want)
		}
	}
}

func TestConfidence(t *testing.T) {
	result := outcome.Result{Line: 2, ID: "1", Text: "x", Answer: "a", Verdict: result.Verdict{Agreement: .5, Confidence: .875, Unknown: .25}}
	want := map[string]string{
		JSONL: `{"id":"1","text":"x","answer":"a","agreement":0.5,"confidence":0.875,"unknown":0.25,"flagged":false,"votes":[]}` + "\n",
		TSV:   tsvHeader + "1\tx\ta\t0.5000\t0.8750\t0.2500\t\tfalse\t\t\t\t\t\n",
		Table: "TEXT  ANSWER  CONFIDENCE  \nx     a        88 %       \n",
	}
	for format, want := range want {
		if d := cmp.Diff(want, render(t, format, []outcome.Result{result})); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
}

// A person's decision is marked in every format.
func TestDecided(t *testing.T) {
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	decision := &result.Decision{By: "Ada", At: at}
	all := []outcome.Result{
		{Line: 2, ID: "1", Text: "x", Answer: "a", Verdict: result.Verdict{Agreement: 1, Confidence: 1, Decided: decision, Reason: decision.String()}},
		{Line: 3, ID: "2", Text: "y", Answer: "b", Verdict: result.Verdict{Agreement: .5}},
	}
	want := map[string]string{
		JSONL: `{"id":"1","text":"x","answer":"a","agreement":1,"confidence":1,"flagged":false,"reason":"decided by Ada on 2026-11-23","decided":{"by":"Ada","at":"2026-11-23T10:00:00Z"},"votes":[]}` + "\n" +
			`{"id":"2","text":"y","answer":"b","agreement":0.5,"flagged":false,"votes":[]}` + "\n",
		TSV:   tsvHeader + "1\tx\ta\t1.0000\t1.0000\t\t\tfalse\tdecided by Ada on 2026-11-23\t\t\t\t\n2\ty\tb\t0.5000\t\t\t\tfalse\t\t\t\t\t\n",
		Table: "TEXT  ANSWER  AGREEMENT  \nx     a       100 %      decided by Ada on 2026-11-23\ny     b        50 %      \n",
	}
	for format, want := range want {
		if d := cmp.Diff(want, render(t, format, all)); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, CSV, Options{Columns: []string{"id", "decided"}})
	if err == nil {
		err = errors.Join(w.Write(all[0]), w.Write(all[1]), w.Close())
	}
	if want := "id,decided\n1,decided by Ada on 2026-11-23\n2,\n"; err != nil || out.String() != want {
		t.Errorf("the column: %q, %v", out.String(), err)
	}
}

// An answer with a missing voter is marked in every format.
func TestMissing(t *testing.T) {
	stop := errors.New("the budget is spent")
	result := outcome.Result{Line: 2, ID: "1", Text: "x", Answer: "a", Verdict: result.Verdict{Agreement: 1}, Missing: []*outcome.Failure{{Stage: "sample.llm", Err: stop}, {Stage: "sample.judge", Err: stop}}}
	want := map[string]string{
		JSONL: `{"id":"1","text":"x","answer":"a","agreement":1,"flagged":false,"missing":["sample.llm","sample.judge"],"votes":[]}` + "\n",
		TSV:   tsvHeader + "1\tx\ta\t1.0000\t\t\t\tfalse\t\t\t\t\tsample.llm; sample.judge\n",
		Table: "TEXT  ANSWER  AGREEMENT  \nx     a       100 %      without sample.llm, sample.judge\n",
	}
	for format, want := range want {
		if d := cmp.Diff(want, render(t, format, []outcome.Result{result})); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
}

// TestTableOfSets: the table shows each label of a set, or level of a tree, with its confidence.
func TestTableOfSets(t *testing.T) {
	got := render(t, Table, []outcome.Result{{
		Text: "x", Answer: "a; b", Verdict: result.Verdict{Agreement: .7, Confidence: .6, Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .93}, {Label: "b", Confidence: .71}}}, Form: sdk.LabelForm{Many: true}, Expected: "a; c",
	}})
	if !strings.Contains(got, "a; b") || !strings.Contains(got, " 60 %") || !strings.Contains(got, "expected a; c, a (0.930); b (0.710)") {
		t.Error(got)
	}
}
