package knowledge_test

import (
	"slices"
	"testing"
)

// The context of a text is embedded and searched with the text, but stays separate.
func TestContext(t *testing.T) {
	b := newBench(t)
	plain, _ := b.open("1\tab\tcards", "2\tcd\t")
	name, _ := plain.Generation()
	b.block.Sources[0].Context, b.block.Sources[0].Label = "label", "none"
	k, embedded := b.open("1\tab\tcards", "2\tcd\t")
	if want := []string{"cards\nab", "cd"}; !slices.Equal(embedded, want) {
		t.Errorf("embedded %q, want %q", embedded, want)
	}
	if with, _ := k.Generation(); with == name {
		t.Error("it went into the generation without contexts")
	}
	if found := find(t, k, "cards"); len(found) != 1 || found[0].Text != "ab" || found[0].Context != "cards" {
		t.Errorf("found %+v", found)
	}
	if _, embedded = b.open("1\tab\tloans", "2\tcd\t"); !slices.Equal(embedded, []string{"loans\nab"}) {
		t.Errorf("another context: embedded %q", embedded)
	}
}
