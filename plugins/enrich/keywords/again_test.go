package keywords

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// What of a document that was asked about before is asked about again: a request holds a
// passage and the title, so only passages that are new are, wherever their document lies.
func TestWhatIsAskedAgain(t *testing.T) {
	at := func(path string, passages []sdk.Passage) []sdk.Passage {
		passages[0].Document.Meta["path"] = path
		return passages
	}
	lines := []string{"w0 is a word.", "w1 is a word.", "w2 is a word.", "w3 is a word."}
	edited := append([]string{}, lines...)
	edited[2] = "other words."
	larger := []string{lines[0], lines[1] + " " + lines[2], lines[3]}
	tests := []struct {
		name   string
		after  []sdk.Passage
		asked  int // of four
		packed int // calls, with two passages in each
	}{
		{"nothing changed, or another knowledge", at("guide/cards.md", document("Cards", lines...)), 0, 0},
		{"renamed", at("guide/plastic.md", document("Cards", lines...)), 0, 0},
		{"another title, as that of a renamed file without a heading", at("plastic.txt", document("plastic.txt", lines...)), 4, 2},
		{"edited", at("guide/cards.md", document("Cards", edited...)), 1, 1},
		{"larger chunks", at("guide/cards.md", document("Cards", larger...)), 1, 1},
		{"in another order", at("guide/cards.md", document("Cards", lines[3], lines[2], lines[1], lines[0])), 0, 0},
	}
	for _, test := range tests {
		for pack, want := range map[string][2]int{"": {4, test.asked}, `, "pack": 2`: {2, test.packed}} {
			t.Run(test.name+strings.TrimPrefix(pack, ","), func(t *testing.T) {
				f := opened(t, modelserver.Options{}, pack)
				before, err := f.Enrich(t.Context(), at("guide/cards.md", document("Cards", lines...)))
				if err != nil || f.server.Calls() != want[0] {
					t.Fatalf("%d calls for %q, %v", f.server.Calls(), added(before), err)
				}
				after, err := f.Enrich(t.Context(), test.after)
				if err != nil {
					t.Fatal(err)
				}
				if n := f.server.Calls() - want[0]; n != want[1] {
					t.Errorf("%d calls, want %d", n, want[1])
				}
				for i, a := range added(after) {
					if first, _, _ := strings.Cut(test.after[i].Text(), " "); a != first {
						t.Errorf("%q has %q", test.after[i].Text(), a)
					}
				}
			})
		}
	}
}
