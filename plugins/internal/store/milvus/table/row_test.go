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
		r := Row{Entry: sdk.Entry{Hash: []byte(name)}, Counts: CountWords(standard, "", text)}
		var got Found
		err := got.readDetails(r.details())
		want := Found{Entry: sdk.Entry{Hash: []byte(name)}, Counts: r.Counts}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v, (-want +got):\n%s", name, err, diff)
		}
	}
	whole := (&Row{Counts: Counts{Length: 300, Words: []CountOf{{1, 300}}}}).details()
	if err := new(Found).readDetails(whole); err != nil {
		t.Errorf("%q: %v", whole, err)
	}
	for _, damaged := range []string{"*", "", "gA", "AQ", "AP8", whole[:len(whole)-2]} {
		if err := new(Found).readDetails(damaged); err == nil {
			t.Errorf("%q is read", damaged)
		}
	}
}

// A text has as many different words as Milvus can keep, or is refused with advice.
func TestManyWords(t *testing.T) {
	table, err := New(nil, Options{}, "c", sdk.Schema{Analyzer: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	var numbers, signs strings.Builder
	for i := range 20_000 {
		signs.WriteRune(rune(0x4e00 + i))
	}
	for i := range 12_000 {
		fmt.Fprint(&numbers, 10_000+i, " ")
	}
	for name, test := range map[string]struct {
		context string
		taken   bool
	}{"a text": {"", true}, "a text and a context": {numbers.String(), false}} {
		rows, long, err := table.CheckRows([]sdk.Entry{{ID: "a", Context: test.context[:min(len(test.context), MaxBytes)], Text: signs.String()}})
		if err != nil || (len(rows) == 1) != test.taken || !test.taken && !strings.Contains(long[0].Error(), "split it") {
			t.Errorf("%s: %d rows, %v, %v", name, len(rows), long, err)
		}
	}
}
