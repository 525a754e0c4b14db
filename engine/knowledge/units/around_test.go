package units

import (
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
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
	if wide.Text != text || wide.ID != c.ID || wide.Score != 1 || wide.Meta["headings"] != "its own" || wide.Meta["first_line"] != 1.0 || wide.Meta["last_line"] != 6.0 {
		t.Errorf("got %+v", wide)
	}
	if c.Meta["first_line"] != 5.0 {
		t.Errorf("the candidate itself is changed: %+v", c)
	}
	if gap := Widen(c, []sdk.Entry{entries[0], {Text: "end", Meta: sdk.Meta{"start": 40.0, "end": 43.0}}}); gap.Text != text[:24]+"\nend" {
		t.Errorf("across a gap: %q", gap.Text)
	}
}
