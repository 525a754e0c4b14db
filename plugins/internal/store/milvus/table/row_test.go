package table

import (
	"slices"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/sdk"
)

// A row is read as it was sent, except for the words, which are those of the analyzer.
func TestColumns(t *testing.T) {
	table, err := New(nil, Options{}, "c", sdk.Schema{Dimension: 1, Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	e := sdk.Entry{ID: "it's 'a'", Label: "l", Context: "Green", Text: "green TEA, and grün", Hash: []byte{0, 255}, Vector: []float32{-2}}
	rows, long, err := table.CheckRows([]sdk.Entry{e, {ID: "b", Vector: []float32{0}}, {ID: strings.Repeat("x", maxBytes+1), Vector: []float32{1}}})
	if err != nil || len(long) != 1 || len(rows) != 2 {
		t.Fatalf("%d rows, %v, %v", len(rows), long, err)
	}
	fields := Columns(rows, table.Schema)
	read, err := ReplyRows(fields, nil, FieldKey)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{
		FieldKey: RowKey(e.ID), FieldID: e.ID, FieldLabel: "l", FieldContext: "Green", FieldText: e.Text, FieldHash: "00ff",
	} {
		if got := read[0].Value(field); got != want {
			t.Errorf("%s: %v, want %v", field, got, want)
		}
	}
	if got := read[0].Value(FieldVector); !slices.Equal(got.([]float32), []float32{-1, 0}) {
		t.Errorf("vector %v", got)
	}
	words := func(f *schemapb.FieldData) bool { return f.GetFieldName() == FieldWords }
	if got := fields[slices.IndexFunc(fields, words)].GetScalars().GetStringData().GetData(); got[0] != "green green tea and xfe263064ba" || got[1] != "" {
		t.Errorf("words %q", got)
	}
}

// A string holds so many words that only the longest texts lose some, and no word is cut.
func TestManyWords(t *testing.T) {
	table, err := New(nil, Options{}, "c", sdk.Schema{Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	if all := table.Words(strings.Repeat("long", maxBytes)); len(all) != 11 {
		t.Errorf("one long word is written in %d bytes, want a hash", len(all))
	}
	const text = "four "
	for texts, want := range map[int]int{1: maxBytes / 5, 3: (maxBytes + 1) / 5} {
		all := table.Words(slices.Repeat([]string{strings.Repeat(text, maxBytes/5)}, texts)...)
		if words := strings.Fields(all); len(words) != want || words[len(words)-1] != "four" || len(all) > maxBytes {
			t.Errorf("%d texts: %d words, %d bytes, want %d", texts, len(words), len(all), want)
		}
	}
}
