package table

import (
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
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Found{})); err != nil || diff != "" {
			t.Errorf("%s: %v, (-want +got):\n%s", name, err, diff)
		}
	}
	var distinct strings.Builder
	for i := range 20000 {
		distinct.WriteRune(rune(0x4e00 + i))
	}
	long := Row{Entry: sdk.Entry{ID: "a", Hash: []byte{1}}, Counts: CountWords(standard, "", distinct.String())}
	var f Found
	if err := f.readDetails(long.details()); len(long.Counts.All()) < 19000 || len(long.details()) > MaxBytes || err != nil || !f.short || len(f.Entry.Hash) != 1 {
		t.Errorf("%d words are %d bytes, %v", len(long.Counts.All()), len(long.details()), err)
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
