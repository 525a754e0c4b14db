package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

func TestDetails(t *testing.T) {
	standard, err := support.NamedAnalyzer("standard")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"nothing": "", "some": "a b a c", "many": strings.Repeat("one two three ", 4000)} {
		r := Row{Entry: sdk.Entry{ID: name, Label: "l", Hash: []byte(name)}, Counts: CountWords(standard, "", text)}
		var got Found
		err := got.readDetails(r.details())
		want := Found{Entry: sdk.Entry{ID: name, Label: "l", Hash: []byte(name)}, Counts: r.Counts}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v, (-want +got):\n%s", name, err, diff)
		}
	}
	whole := (&Row{Counts: Counts{Length: 300, Packed: []byte{1, 0, 0, 0, 44, 1}}}).details()
	if err := new(Found).readDetails(whole); err != nil {
		t.Errorf("%q: %v", whole, err)
	}
	for _, damaged := range []string{"*", "", "gA", "AAAA", "AQEBAQEB", whole[:len(whole)-1]} {
		if err := new(Found).readDetails(damaged); err == nil {
			t.Errorf("%q is read", damaged)
		}
	}
}

// A text with so many different words that a search could not read them with its row is left out.
func TestTooManyWords(t *testing.T) {
	var distinct strings.Builder
	for i := range 20000 {
		distinct.WriteRune(rune(0x4e00 + i))
	}
	table, err := New(&Server{}, Options{}, "c", sdk.Schema{Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	rows, long, err := table.CheckRows([]sdk.Entry{{ID: "a", Text: distinct.String()}, {ID: "b", Text: "few"}})
	if err != nil || len(rows) != 1 || len(long) != 1 || !strings.Contains(fmt.Sprint(long[0]), "split the text") {
		t.Errorf("%d rows, %v, %v", len(rows), long, err)
	}
}
