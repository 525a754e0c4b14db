package expect_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace/expect"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
)

// run keeps a run over an input, with these results.
func run(t *testing.T, m journal.Manifest, input string, results ...outcome.Result) (journal.Runs, journal.Manifest) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "items.jsonl")
	if err := os.WriteFile(path, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.Input, err = journal.LookAtFile(path); err != nil {
		t.Fatal(err)
	}
	m.Columns, m.Answers = &journal.ManifestColumns{Form: source.Form{Format: "jsonl"}, ID: "id", Text: "text"}, journal.LabelAnswers
	kept := journal.RunsOf(dir)
	j, _, err := kept.Begin(m, journal.Options{}, journal.Retention{})
	if err == nil {
		err = errors.Join(j.Keep(results), j.Close(nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	return kept, j.Manifest
}

func read(t *testing.T, runs journal.Runs, m journal.Manifest, confident float64) *expect.AnswerExport {
	t.Helper()
	e, err := expect.ReadAnswers(runs, m.ID, confident)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func vote(voter, answer string, weight float64) outcome.Vote {
	return outcome.Vote{Voter: voter, Answer: answer, Weight: weight, Accepted: true}
}

func TestRows(t *testing.T) {
	m := journal.Manifest{Pipeline: "p", Stages: []journal.ManifestStage{
		{Stage: "retrieve.near"}, {Stage: "sample.knn"}, {Stage: "sample.llm", Model: "m-1"}, {Stage: "sample.judge", Model: "m-2"},
		{Stage: "sample.spare", Model: "m-3"}, {Stage: "sample.spare, fallback.cheap", Model: "m-4"}, {Stage: "elect.e"},
	}}
	off := vote("judge", "off", 1)
	off.Accepted = false
	runs, m := run(t, m, `{"id":"a","text":"tab\tand \"quotes\" <é>"}
{"text":"two"}
{"id":"a","text":"three"}
`,
		outcome.Result{Line: 1, ID: "a", Answer: "yes", Verdict: outcome.Verdict{Agreement: .5, Confidence: .95}, Votes: []outcome.Vote{
			vote("knn", "yes", .6), vote("knn", "no", .4), vote("llm", "no", 1), vote("llm", "yes", 1), vote("llm", "yes", 1), off, vote("spare", "yes", 1),
		}},
		outcome.Result{Line: 2, ID: "2", Answer: "no", Verdict: outcome.Verdict{Agreement: 1, Confidence: .9}, Votes: []outcome.Vote{vote("knn", "yes", 1), vote("llm", "no", 1), vote("judge", "no", 1)}},
		outcome.Result{Line: 3, ID: "a", Answer: "yes", Verdict: outcome.Verdict{Agreement: 0.8999999999}},
	)
	e := read(t, runs, m, .9)
	started := m.Started.Format(time.RFC3339)
	want := []expect.AnswerRow{
		{ID: "a", Text: "tab\tand \"quotes\" <é>", Label: "yes", Confidence: .95, Agreement: .5, Voters: "knn, llm, spare", Models: "m-1", Pipeline: "p", Run: m.ID, Started: started},
		{ID: "2", Text: "two", Label: "no", Confidence: .9, Agreement: 1, Voters: "llm, judge", Models: "m-1, m-2", Pipeline: "p", Run: m.ID, Started: started},
		{ID: "a#3", Text: "three", Label: "yes", Agreement: .9, Pipeline: "p", Run: m.ID, Started: started},
	}
	if d := cmp.Diff(want, e.Rows, cmpopts.IgnoreUnexported(expect.AnswerRow{})); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	if e.Items != 3 || e.ByAgreement != 1 || e.Surest != .95 {
		t.Errorf("%+v", e)
	}
	for _, format := range []source.Format{source.JSONL, source.TSV} {
		var out bytes.Buffer
		if err := expect.WriteAnswers(&out, format, e.Rows); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "rows."+string(format))
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := source.Open(path, source.Form{}, source.Mapping{ID: "id", Text: "text", Label: "label"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		for _, want := range e.Rows {
			if format == source.TSV {
				want.Text = strings.ReplaceAll(want.Text, "\t", " ")
			}
			row, err := in.Next()
			if err != nil || row.Err != nil || row.ID != want.ID || row.Text != want.Text || row.Label != want.Label || row.Meta["run"] != m.ID {
				t.Errorf("%s is read as %+v, %v; want %+v", format, row, err, want)
			}
		}
	}
	for _, bad := range []expect.AnswerRow{{ID: "a\tb"}, {Label: "a\nb"}} {
		if err := expect.WriteAnswers(new(bytes.Buffer), source.TSV, []expect.AnswerRow{bad}); err == nil || !strings.Contains(err.Error(), "write JSONL") {
			t.Errorf("%+v as TSV: %v", bad, err)
		}
	}
}

func TestLeftOut(t *testing.T) {
	away := &outcome.Failure{Stage: "sample.llm", Err: errors.New("away")}
	var input strings.Builder
	for _, text := range []string{"sure", "unsure", "flagged", "nobody", "failed", "without", "same", "same", " same\n", "torn", "torn", "doubted", "doubted", "unreached", "beyond"} {
		fmt.Fprintf(&input, "{\"text\":%q}\n", text)
	}
	answers := []outcome.Result{
		{Answer: "x", Verdict: outcome.Verdict{Confidence: .9}}, {Answer: "x", Verdict: outcome.Verdict{Confidence: .8999, Agreement: 1}}, {Answer: "x", Verdict: outcome.Verdict{Confidence: 1, Flagged: true}}, {Verdict: outcome.Verdict{Reason: "none fits"}},
		{Failure: away}, {Answer: "x", Verdict: outcome.Verdict{Confidence: 1}, Missing: []*outcome.Failure{away}},
		{Answer: "x", Verdict: outcome.Verdict{Confidence: .91}}, {Answer: "x", Verdict: outcome.Verdict{Confidence: .99}}, {Answer: "x", Verdict: outcome.Verdict{Confidence: .2}},
		{Answer: "x", Verdict: outcome.Verdict{Confidence: .99}}, {Answer: "y", Verdict: outcome.Verdict{Confidence: .95}},
		{Answer: "x", Verdict: outcome.Verdict{Confidence: .97}}, {Answer: "y", Verdict: outcome.Verdict{Confidence: .1, Flagged: true}},
	}
	for i := range answers {
		answers[i].Line, answers[i].ID = i+1, fmt.Sprint(i+1)
	}
	runs, m := run(t, journal.Manifest{Limit: 14}, input.String(), answers...)
	e := read(t, runs, m, .9)
	var rows []string
	for _, r := range e.Rows {
		rows = append(rows, fmt.Sprint(r.ID, " ", r.Text, " ", r.Confidence))
	}
	if d := cmp.Diff([]string{"1 sure 0.9", "8 same 0.99"}, rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	e.Rows, e.Run = nil, journal.Manifest{}
	if d := cmp.Diff(&expect.AnswerExport{
		Items: 14, Unreached: 1, Failed: 1, Provisional: 1, Undecided: 1, Flagged: 2, Unsure: 2, Repeated: 1, Contradicted: 3, Surest: .99,
	}, e); d != "" {
		t.Errorf("export (-want +got):\n%s", d)
	}
}

func TestRefusals(t *testing.T) {
	kept, m := run(t, journal.Manifest{}, `{"text":"one"}`+"\n", outcome.Result{Line: 1, ID: "1", Answer: "x", Verdict: outcome.Verdict{Confidence: 1}})
	manifest := filepath.Join(filepath.Dir(m.Input.Path), "runs", m.ID, "manifest.json")
	whole, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := regexp.MustCompile(`(?s),\s+"sum": "[0-9a-f]{8}"`).ReplaceAll(whole, nil)
	for name, test := range map[string]struct{ old, new, want string }{
		"texts":    {`"answers": "labels"`, `"answers": "texts"`, "answers with texts, and only labels can be exported"},
		"passages": {`"answers": "labels"`, `"answers": "passages"`, "answers with passages"},
		"changed":  {m.Input.SHA256, strings.Repeat("0", 64), "has changed since: put the old file back, or run it again"},
		"gone":     {"items.jsonl", "elsewhere.jsonl", "cannot be read again: "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(manifest, journal.SealFile(bytes.TrimSuffix(bytes.Replace(unsealed, []byte(test.old), []byte(test.new), 1), []byte("\n"))), 0o600); err != nil {
				t.Fatal(err)
			}
			if e, err := expect.ReadAnswers(kept, m.ID, .5); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v, error %v, want %q", e, err, test.want)
			}
		})
	}
	if err := os.WriteFile(manifest, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := kept.Resume(m.ID, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := expect.ReadAnswers(kept, m.ID, .5); err == nil || !strings.Contains(err.Error(), "being worked on by another process") {
		t.Errorf("a run at work: %v", err)
	}
	if err := j.Close(nil); err != nil {
		t.Fatal(err)
	}
	if e := read(t, kept, m, .5); len(e.Rows) != 1 || kept.List()[0].State != journal.Unfinished {
		t.Errorf("%+v of a run that is %s", e, kept.List()[0].State)
	}
}

// TestDecidedRows: a label that a person decided says so.
func TestDecidedRows(t *testing.T) {
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	kept, m := run(t, journal.Manifest{Pipeline: "p"}, `{"id":"a","text":"one"}`+"\n",
		outcome.Result{Line: 1, ID: "a", Answer: "yes", Verdict: outcome.Verdict{Agreement: 1, Confidence: 1, Decided: &outcome.Decision{By: "Ada", At: at}}})
	if rows := read(t, kept, m, .9).Rows; len(rows) != 1 || rows[0].Label != "yes" || rows[0].Voters != "decided by Ada on 2026-11-23" {
		t.Errorf("%+v", rows)
	}
}
