package knowledge_test

import (
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/fuse"
)

// What situates a text is embedded and searched with it, and stays apart from
// it.
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
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 10, Texts: true}, Fusion: sdk.Fusion{Method: fuse.Weighted}, TopK: 10}
	found, _, err := k.Retrieve(t.Context(), ranking, []sdk.Query{{Text: "cards"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(found[0]) != 1 || found[0][0].Text != "ab" || found[0][0].Context != "cards" {
		t.Errorf("found %+v", found[0])
	}
	if _, embedded = b.open("1\tab\tloans", "2\tcd\t"); !slices.Equal(embedded, []string{"loans\nab"}) {
		t.Errorf("another context: embedded %q", embedded)
	}
}
