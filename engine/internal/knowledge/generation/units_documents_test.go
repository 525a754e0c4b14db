package generation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

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

// TestDecidedMeanwhile: if a decision is made while the file is read, a later check detects the
// change.
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

// TestKeptUnits: the second pass of a build gets the texts of the first pass, and the third pass reads the files again.
// Texts for which there is no room are read each time.
func TestKeptUnits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Source{}
	load := s.loadDocuments(document.Set{Path: filepath.Dir(path)})
	read := func() (text string) {
		if err := load(t.Context(), []Unit{{ID: "a.md"}, {ID: "none.md"}}, func(u Unit, err error) error {
			if (err != nil) != (u.ID == "none.md") {
				t.Errorf("%s: %v", u.ID, err)
			}
			text += u.Text
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return text
	}
	write("one")
	first := read()
	write("two")
	if second, third := read(), read(); first != "one" || second != "one" || third != "two" {
		t.Errorf("%q, %q, %q", first, second, third)
	}
	k := &keptUnits{room: 3, units: map[string]Unit{}}
	k.put(Unit{ID: "a", Text: "four"})
	k.put(Unit{ID: "b", Text: "two"})
	k.put(Unit{ID: "c", Text: "x"})
	_, a := k.take("a")
	_, b := k.take("b")
	_, c := k.take("c")
	if a || !b || c || k.room != 3 {
		t.Errorf("%v, %v, %v, room %d", a, b, c, k.room)
	}
}
