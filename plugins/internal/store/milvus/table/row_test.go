package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/sdk/support"
)

func TestDetails(t *testing.T) {
	standard, err := support.NamedAnalyzer("standard")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"nothing": "", "some": "a b a c", "many": strings.Repeat("one two three ", 4000)} {
		want := details{hash: []byte(name), complete: true, id: name, label: "l", counts: CountWords(standard, "", text)}
		got, err := decodeDetails(want.encode())
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(details{}), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v, (-want +got):\n%s", name, err, diff)
		}
	}
	var distinct strings.Builder
	for i := range 20000 {
		distinct.WriteRune(rune(0x4e00 + i))
	}
	c := CountWords(standard, "", distinct.String())
	text := details{hash: []byte{1}, counts: c}.encode()
	if d, err := decodeDetails(text); len(c.All()) < 19000 || len(text) > MaxBytes || err != nil || d.complete || d.counts.Packed != nil || len(d.hash) != 1 {
		t.Errorf("%d words are %d bytes, %v", len(c.All()), len(text), err)
	}
	whole := details{counts: Counts{Length: 300, Packed: []byte{1, 0, 0, 0, 44, 1}}}.encode()
	if _, err := decodeDetails(whole); err != nil {
		t.Errorf("%q: %v", whole, err)
	}
	for _, damaged := range []string{"*", "", "gA", "AAAA", "AQEBAQEB", whole[:len(whole)-1]} {
		if d, err := decodeDetails(damaged); err == nil {
			t.Errorf("%q gives %+v", damaged, d)
		}
	}
}
