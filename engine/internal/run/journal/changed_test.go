package journal_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestChangedLines edits a journal in each way: changed lines are answered again, and counted until
// then.
func TestChangedLines(t *testing.T) {
	all := journalResults()[:4]
	tests := map[string]struct {
		old, new string
		changed  int
		known    []int
	}{
		"nothing":              {"", "", 0, []int{2, 3, 5, 6}},
		"an answer":            {`It is\n\tso [2].`, `It is\n\tso [4].`, 1, []int{2, 3, 5}},
		"a flag":               {`"flagged":true,`, ``, 1, []int{3, 5, 6}},
		"a checksum is gone":   {`(?)`, ``, 4, nil},
		"another line":         {`"line":3,`, `"line":4,`, 1, []int{2, 5, 6}},
		"a line of one's own":  {"\x00", `{"line":7,"id":"f","answer":"x","votes":[]}` + "\n", 1, []int{2, 3, 5, 6}},
		"a line twice":         {"\x01", "", 0, []int{2, 3, 5, 6}},
		"a line that is gone":  {"\x02", "", 0, []int{3, 5, 6}},
		"what cannot be read":  {`"line":5,`, `"line";5,`, 1, []int{2, 3, 6}},
		"the end of the lines": {"\x03", "", 0, []int{2, 3, 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			j := journalBegin(t, state, journal.Manifest{})
			must.Do(t, j.Keep(all))
			must.Do(t, j.Close(nil))
			path := filepath.Join(j.Folder(), journal.File)
			text, err := os.ReadFile(path)
			must.Do(t, err)
			lines := bytes.SplitAfter(text, []byte("\n"))
			switch test.old {
			case `(?)`:
				for i := range lines[:4] {
					lines[i] = append(bytes.Clone(lines[i][:len(lines[i])-len(`,"sum":"01234567"}`+"\n")]), "}\n"...)
				}
				text = bytes.Join(lines, nil)
			case "\x00":
				text = append(text, test.new...)
			case "\x01":
				text = append(text, lines[1]...)
			case "\x02":
				text = bytes.Join(lines[1:], nil)
			case "\x03":
				text = text[:len(text)-1]
			default:
				text = bytes.Replace(text, []byte(test.old), []byte(test.new), 1)
			}
			must.Do(t, os.WriteFile(path, text, 0o600))
			j = journalResume(t, state, j.ID())
			var known []int
			for _, r := range again(j, all) {
				known = append(known, r.Line)
			}
			if j.Changed != test.changed || !slices.Equal(known, test.known) || j.Known() != len(known) {
				t.Errorf("%d lines changed, %v known, want %d and %v", j.Changed, known, test.changed, test.known)
			}
			must.Do(t, j.Keep(all)) // they are answered again
			must.Do(t, j.Close(nil))
			j = journalResume(t, state, j.ID())
			defer j.Close(nil)
			left := 0
			if test.old == "\x00" || strings.HasPrefix(test.new, `"line":4`) || test.old == `"line":5,` { // they belong to no item of the run
				left = 1
			}
			if j.Changed != left || written(t, again(j, all)) != written(t, all) {
				t.Errorf("answered again: %d lines count as changed, %d known", j.Changed, j.Known())
			}
		})
	}
}

// TestChangedFiles edits the manifest and the totals.
func TestChangedFiles(t *testing.T) {
	state := t.TempDir()
	kept := journal.RunsOf(state)
	j := journalBegin(t, state, journal.Manifest{File: "/p.hcl", Pipeline: "p"})
	must.Do(t, j.Close(journal.NewTotals(outcome.Totals{Items: 3}, nil)))
	edit := func(name, old, new string) {
		t.Helper()
		path := filepath.Join(j.Folder(), name)
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(old)) {
			t.Fatalf("%s, %v", text, err)
		}
		must.Do(t, os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o600))
	}
	edit("totals.json", `"items": 3`, `"items": 4`)
	if end := kept.End(j.ID()); end != nil {
		t.Errorf("a run that may not have ended so: %+v", end)
	}
	edit("manifest.json", `"/p.hcl"`, `"/q.hcl"`)
	for name, err := range map[string]error{
		"manifest": func() error { _, err := kept.Manifest(j.ID()); return err }(),
		"resume":   func() error { _, err := kept.Resume(j.ID(), journal.Options{}); return err }(),
		"open":     func() error { _, err := kept.Open(j.ID()); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "its manifest.json was changed after it was written") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := kept.List(); len(list) != 1 || list[0].State != journal.Damaged {
		t.Errorf("%+v", list)
	}
	if err := kept.Remove(j.ID()); err != nil {
		t.Error(err)
	}
}

// TestResults: the results of each row are the same for an open run and for a run that ended.
func TestResults(t *testing.T) {
	state := t.TempDir()
	rows := []source.Row{
		{Line: 2, ID: "a", Text: "one", Label: "x"}, {Line: 3, Text: "two"}, {Line: 4, Text: "never"}, {Line: 5, ID: "a", Text: "three"},
		{Line: 6, Err: io.ErrUnexpectedEOF}, {Line: 7, Text: "beyond"},
	}
	away := &outcome.Failure{Stage: "sample.llm", Err: io.ErrNoProgress}
	kept := []outcome.Result{
		{Line: 5, ID: "a", Failure: away}, {Line: 6, ID: "6", Failure: &outcome.Failure{Err: io.ErrUnexpectedEOF}},
		{Line: 3, ID: "3", Answer: "y", Missing: []*outcome.Failure{away}}, {Line: 2, ID: "a", Expected: "x", Answer: "x"},
	}
	j := journalBegin(t, state, journal.Manifest{Limit: 5, Answers: journal.TextAnswers})
	j.Index()
	must.Do(t, j.Keep(kept[:2]))
	must.Do(t, j.Keep(kept[2:]))
	check := func(j *journal.Journal) {
		t.Helper()
		n := 0
		var got []journal.Item
		for item, err := range j.Results(func() (source.Row, error) { n++; return rows[n-1], nil }) {
			must.Do(t, err)
			got = append(got, item)
		}
		want := []journal.Status{journal.Answered, journal.Provisional, journal.Unreached, journal.Failed, journal.Failed}
		if len(got) != len(want) {
			t.Fatalf("%d items", len(got))
		}
		for i, item := range got {
			r := item.Result
			must.Equal(t, fmt.Sprintf("item %d: status, line, text, free text, an ID", i), []any{want[i], rows[i].Line, rows[i].Text, true, true}, []any{item.Status, r.Line, r.Text, r.FreeText, r.ID != ""})
		}
		if r := got[1].Result; r.Answer != "y" || r.ID != "3" || len(r.Missing) != 1 || r.Missing[0].Stage != "sample.llm" {
			t.Errorf("provisional: %+v", r)
		}
		if f := got[3].Result.Failure; f.Stage != "sample.llm" || f.Err.Error() != io.ErrNoProgress.Error() {
			t.Errorf("failed: %v", f)
		}
		if f := got[4].Result.Failure; f.Err != io.ErrUnexpectedEOF {
			t.Errorf("a bad row: %v", f)
		}
		var lines []int
		for item := range j.Kept() {
			lines = append(lines, item.Row.Line)
			if item.Row.Line == 2 && item.Row.Label != "x" {
				t.Errorf("expected is %q", item.Row.Label)
			}
		}
		if !slices.Equal(lines, []int{2, 3, 5, 6}) {
			t.Errorf("kept: %v", lines)
		}
	}
	check(j)
	must.Do(t, j.Close(nil))
	j, err := journal.RunsOf(state).Open(j.ID())
	must.Do(t, err)
	defer j.Close(nil)
	check(j)
	failing := func() (source.Row, error) { return source.Row{}, io.ErrClosedPipe }
	for _, err := range j.Results(failing) {
		if err != io.ErrClosedPipe {
			t.Errorf("error %v", err)
		}
	}
}
