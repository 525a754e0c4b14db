package units

import (
	"testing"

	"github.com/racflow/racflow/sdk"
)

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
