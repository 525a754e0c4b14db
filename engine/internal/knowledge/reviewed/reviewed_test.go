package reviewed_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o644))
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Do(t, err)
	return string(text)
}

var at = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// TestLine fixes the format: files are committed, and later versions read them.
func TestLine(t *testing.T) {
	tests := map[string]struct {
		row  reviewed.Row
		line string
	}{
		"all": {
			reviewed.Row{Text: "my card <is> gone", Label: "card_lost", Reviewer: "Ada", ReviewedAt: at, Run: "run-000012", Item: "17", Was: "card_stolen"},
			`{"id":"r-d76eb0927a35","text":"my card <is> gone","label":"card_lost","reviewer":"Ada","reviewed_at":"2026-11-23T10:00:00Z","run":"run-000012","item":"17","was":"card_stolen"}`,
		},
		"another zone": {
			reviewed.Row{Text: "a", Label: "x", ReviewedAt: at.In(time.FixedZone("CET", 3600))},
			`{"id":"r-ca978112ca1b","text":"a","label":"x","reviewer":"","reviewed_at":"2026-11-23T10:00:00Z"}`,
		},
		"replaced": {
			reviewed.Row{Text: "a", Label: "x", Reviewer: "Ada", ReviewedAt: at, Replaces: "train-7"},
			`{"id":"r-33545907c2b0","text":"a","label":"x","reviewer":"Ada","reviewed_at":"2026-11-23T10:00:00Z","replaces":"train-7"}`,
		},
		"dropped": {
			reviewed.Row{Text: "a", Reviewer: "Ada", ReviewedAt: at, Replaces: "train-7"},
			`{"id":"r-33545907c2b0","text":"a","label":null,"reviewer":"Ada","reviewed_at":"2026-11-23T10:00:00Z","replaces":"train-7"}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "reviewed.jsonl")
			must.Do(t, reviewed.Write(path, nil, []reviewed.Row{test.row}))
			if got := content(t, path); got != test.line+"\n" {
				t.Errorf("got  %swant %s", got, test.line)
			}
			want := test.row
			want.ID, want.ReviewedAt, want.Line = reviewed.ID(want.Text, want.Replaces), want.ReviewedAt.UTC(), 1
			rows, errs := reviewed.Read(path, sdk.LabelForm{})
			if len(errs) > 0 || len(rows) != 1 || rows[0] != want {
				t.Errorf("read: %+v, %v", rows, errs)
			}
			if text, err := json.Marshal(test.row); err != nil || len(text) != len(test.line)+strings.Count(test.line, "<")*5+strings.Count(test.line, ">")*5 {
				t.Errorf("as JSON: %s, %v", text, err)
			}
		})
	}
	if err := reviewed.Write(filepath.Join(t.TempDir(), "f"), nil, []reviewed.Row{{Text: "a"}}); err == nil || !strings.Contains(err.Error(), `"a" cannot be kept: it has no label`) {
		t.Errorf("a row without a label: %v", err)
	}
}

// TestByHand: a person edits the file, and makes mistakes.
func TestByHand(t *testing.T) {
	const good = `{"text":"a","label":"x","reviewer":"Ada","reviewed_at":"2026-11-23"}`
	tests := map[string]struct{ line, want string }{ // want: part of the error; empty: no error
		"plain":         {good, ""},
		"no time":       {`{"text":"b","label":"x"}`, ""},
		"more members":  {`{"text":"b","label":"x","note":{"why":"obvious"}}`, ""},
		"spaces":        {"  {\"text\":\"b\",\"label\":\"x\"}\t", ""},
		"dropped":       {`{"label":null,"replaces":"7"}`, ""},
		"cut off":       {`{"text":"b","label"`, "column 19: it is not JSON"},
		"a comma":       {`{"text":"b",}`, "column 13: it is not JSON"},
		"an array":      {`["b"]`, "it is not a JSON object"},
		"null":          {`null`, "it has no text"},
		"a number":      {`{"text":7,"label":"x"}`, `"text" is not a string`},
		"no text":       {`{"text":" ","label":"x"}`, "it has no text"},
		"no label":      {`{"text":"b"}`, "it has no label"},
		"a day of 2026": {`{"text":"b","label":"x","reviewed_at":"23.11.2026"}`, "write a time as"},
		"latin-1":       {"{\"text\":\"\xe4\",\"label\":\"x\"}", "UTF-8"},
		"a conflict":    {"<<<<<<< HEAD", "column 1: it is not JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "reviewed.jsonl")
			before := "\n" + test.line + "\r\n" + `{"text":"last","label":"y"}` // without a line feed at the end
			write(t, path, before)
			rows, errs := reviewed.Read(path, sdk.LabelForm{})
			if test.want == "" {
				if len(errs) > 0 || len(rows) != 2 {
					t.Fatalf("got %+v, %v", rows, errs)
				}
			} else {
				must.Equal(t, "rows", []reviewed.Row{{ID: reviewed.ID("last", ""), Text: "last", Label: "y", Line: 3}}, rows)
				line := new(reviewed.LineError)
				if len(errs) != 1 || !errors.As(errs[0], &line) || line.Line != 2 || !strings.Contains(errs[0].Error(), test.want) {
					t.Fatalf("errors %v", errs)
				}
			}
			must.Do(t, reviewed.Write(path, nil, []reviewed.Row{{Text: "new", Label: "z"}}))
			if got := content(t, path); !strings.HasPrefix(got, before+"\n") || strings.Count(got, "\n") != 4 {
				t.Errorf("the other lines are %q", got)
			}
			if err := reviewed.Remove(path, nil, reviewed.ID("new", "")); err != nil || content(t, path) != before+"\n" {
				t.Errorf("after the new one was removed: %q, %v", content(t, path), err)
			}
		})
	}
	joined := filepath.Join(t.TempDir(), "joined.jsonl")
	write(t, joined, "\ufeff"+good+"\r\n\ufeff"+`{"text":"last","label":"y"}`+"\n\ufeff")
	if rows, errs := reviewed.Read(joined, sdk.LabelForm{}); len(rows) != 2 || len(errs) > 0 {
		t.Errorf("files with byte order marks: %+v, %v", rows, errs)
	}
	rows, errs := reviewed.Read(filepath.Join(t.TempDir(), "none"), sdk.LabelForm{})
	if len(rows)+len(errs) > 0 {
		t.Errorf("a file that is not there: %v, %v", rows, errs)
	}
	if _, errs = reviewed.Read(t.TempDir(), sdk.LabelForm{}); len(errs) != 1 || errors.As(errs[0], new(*reviewed.LineError)) {
		t.Errorf("a folder: %v", errs)
	}
}

// TestLater: a later decision about the same subject replaces the earlier one.
func TestLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "reviewed.jsonl")
	put := func(rows ...reviewed.Row) {
		t.Helper()
		must.Do(t, reviewed.Write(path, nil, rows))
	}
	labels := func() (all []string) {
		rows, errs := reviewed.Read(path, sdk.LabelForm{})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, r := range rows {
			all = append(all, r.Text+r.Replaces+"="+r.Label)
		}
		return all
	}
	put(reviewed.Row{Text: "a", Label: "x"}, reviewed.Row{Text: "b", Label: "x"}, reviewed.Row{Text: "c", Label: "x", Replaces: "7"})
	put(reviewed.Row{Text: "b", Label: "y"}, reviewed.Row{Text: "other", Label: "y", Replaces: "7"}, reviewed.Row{Text: "c", Label: "z"})
	if got, want := labels(), []string{"a=x", "b=y", "other7=y", "c=z"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	merged := `{"text":"a","label":"first"}` + "\n" + `{"text":"b","label":"y"}` + "\n" + `{"text":"a","label":"second"}` + "\n"
	write(t, path, merged)
	if got, want := labels(), []string{"a=second", "b=y"}; !slices.Equal(got, want) {
		t.Errorf("of two lines: %q, want %q", got, want)
	}
	put(reviewed.Row{Text: "a", Label: "third"})
	if got, want := labels(), []string{"b=y", "a=third"}; !slices.Equal(got, want) || strings.Contains(content(t, path), "first") {
		t.Errorf("after another: %q, want %q in %s", got, want, content(t, path))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o200 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

func TestFind(t *testing.T) {
	d := reviewed.Of([]reviewed.Row{
		{Text: "My  card is\tGONE ", Label: "old"}, {Text: "my card is gone", Label: "lost"}, {Text: "no", Replaces: "7"}, {Text: "Gr\u00fcn", Label: "green"},
	})
	for text, want := range map[string]string{
		"my card is gone": "lost", " MY CARD\nis gone": "lost", "my card is gone.": "", "no": "", "GRU\u0308N": "green", "": "",
	} {
		if r, ok := d.Find(text); ok != (want != "") || r.Label != want {
			t.Errorf("%q: %+v, %v", text, r, ok)
		}
	}
	// A decision about a text takes precedence, wherever another row was given that text.
	text, row := reviewed.Row{Text: "a", Label: "of the text"}, reviewed.Row{Text: "A", Label: "of a row", Replaces: "7"}
	for _, rows := range [][]reviewed.Row{{text, row}, {row, text}} {
		if r, _ := reviewed.Of(rows).Find("a"); r.Label != text.Label {
			t.Errorf("%+v: %+v", rows, r)
		}
	}
	if _, ok := reviewed.Of(nil).Find("a"); ok {
		t.Error("nothing decides")
	}
}

// TestSets: people may write the labels of a set in any order, with spaces. A set without labels is
// reported, and does not drop the row that it replaces.
func TestSets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	write(t, path, `{"text":"one","label":"b;  a ; b"}`+"\n"+`{"text":"two","label":"a"}`+"\n"+`{"text":"three","label":"; ","replaces":"7"}`+"\n"+`{"text":"four","label":["a","b"]}`+"\n")
	rows, errs := reviewed.Read(path, sdk.LabelForm{Many: true})
	var got []string
	for _, r := range rows {
		got = append(got, r.Text+": "+r.Label)
	}
	for _, err := range errs {
		got = append(got, strings.TrimPrefix(err.Error(), path))
	}
	if want := []string{"one: a; b", "two: a", `:3: "; " has no label`, `:4: "label" is not a string`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if rows, _ := reviewed.Read(path, sdk.LabelForm{}); rows[0].Label != "b;  a ; b" {
		t.Errorf("the only label of a row becomes %q", rows[0].Label)
	}
}
