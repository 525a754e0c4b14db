package generation

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestAround(t *testing.T) {
	chunk := sdk.Candidate{ID: "a#b.md#1", Meta: sdk.Meta{"document": "a#b.md"}}
	for name, test := range map[string]struct {
		c    sdk.Candidate
		n    int
		want []string
	}{
		"both sides":       {chunk, 1, []string{"a#b.md#0", "a#b.md#1", "a#b.md#2"}},
		"from the first":   {chunk, 2, []string{"a#b.md#0", "a#b.md#1", "a#b.md#2", "a#b.md#3"}},
		"a row":            {sdk.Candidate{ID: "row-7"}, 1, nil},
		"a third party's":  {sdk.Candidate{ID: "x", Meta: sdk.Meta{"document": "a.md"}}, 1, nil},
		"another document": {sdk.Candidate{ID: "b.md#1", Meta: sdk.Meta{"document": "a.md"}}, 1, nil},
	} {
		if got := Around(test.c, test.n); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What chunks of a document share stands once, and so does the header that each repeats.
func TestWiden(t *testing.T) {
	text := "Fees:\n| a |\n|---|\n| 1 |\n| 2 |\nAnd no more.\n"
	d := Document{Unit: Unit{ID: "a.md", Text: text, Meta: sdk.Meta{"path": "a.md"}, Hash: make([]byte, HashBytes)}, Chunks: []sdk.Chunk{
		{End: 24}, {Start: 24, End: 30, Header: sdk.Span{Start: 6, End: 18}}, {Start: 27, End: len(text)},
	}}
	entries := d.Entries()
	c := sdk.Candidate{ID: entries[1].ID, Text: entries[1].Text, Meta: entries[1].Meta, Score: 1}
	c.Meta["headings"] = "its own"
	wide := Widen(c, entries)
	must.Equal(t, "wide", []any{text, c.ID, float32(1), "its own", 1.0, 6.0}, []any{wide.Text, wide.ID, wide.Score, wide.Meta["headings"], wide.Meta["first_line"], wide.Meta["last_line"]})
	if c.Meta["first_line"] != 5.0 {
		t.Errorf("the candidate itself is changed: %+v", c)
	}
	if gap := Widen(c, []sdk.Entry{entries[0], {Text: "end", Meta: sdk.Meta{"start": 40.0, "end": 43.0}}}); gap.Text != text[:24]+"\nend" {
		t.Errorf("across a gap: %q", gap.Text)
	}
}

// An entry has the header of its chunk, and the place of the chunk alone.
func TestHeaders(t *testing.T) {
	text := "Fees:\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"
	d := Document{Unit: Unit{ID: "a.md", Text: text, Hash: make([]byte, HashBytes)}, Chunks: []sdk.Chunk{
		{End: 36}, {Start: 36, End: 46, Header: sdk.Span{Start: 6, End: 26}},
	}}
	entries := d.Entries()
	if got := entries[0]; got.Text != text[:36] || got.Meta["header"] != nil {
		t.Errorf("without a header: %+v", got)
	}
	got := entries[1]
	if want := "| a | b |\n|---|---|\n| 3 | 4 |\n"; got.Text != want || got.Meta["first_line"] != 5.0 || got.Meta["last_line"] != 5.0 ||
		got.Meta["start"] != 36.0 || got.Meta["end"] != 46.0 || got.Meta["header"] != 20.0 {
		t.Errorf("with a header: %+v", got)
	}
	if p := d.Passages()[1]; p.Text() != got.Text {
		t.Errorf("an enricher sees %q", p.Text())
	}
}

// TestDecidedMeanwhile: a decision that is made while the file is read makes a later look see that
// it has changed.
func TestDecidedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	const rows = `{"text":"a","label":"x"}` + "\nno JSON\n"
	put := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(rows)
	d, err := readDecided(path, sdk.LabelForm{}, func(InvalidRow) { put(rows + `{"text":"b","label":"x"}` + "\n") })
	if err != nil || len(d.rows) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if now, err := digestOfDecisions(path); err != nil || now == d.digest {
		t.Errorf("what was read without the new decision passes for what the file has now: %v", err)
	}
}
