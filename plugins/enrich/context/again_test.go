package context

import (
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// What of a document that was asked about before is asked about again: each request holds
// the document, so a rename asks nothing, and an edit all of it.
func TestWhatIsAskedAgain(t *testing.T) {
	const text = "Cards.\nA lost card is blocked.\nA new one comes by mail.\nIt takes a week."
	// cut makes passages of the given numbers of lines.
	cut := func(title, path, text string, sizes ...int) (passages []sdk.Passage) {
		d, lines, at := &sdk.Document{ID: path, Text: text, Meta: sdk.Meta{"title": title, "path": path}}, strings.Split(text, "\n"), 0
		for _, n := range sizes {
			end := at + len(strings.Join(lines[:n], "\n"))
			passages = append(passages, sdk.Passage{Document: d, Chunk: sdk.Chunk{Start: at, End: end}})
			lines, at = lines[n:], end+1
		}
		return passages
	}
	before := cut("Cards", "guide/cards.md", text, 1, 1, 1, 1)
	nameless := cut("cards.txt", "guide/cards.txt", text, 1, 1, 1, 1)
	tests := []struct {
		name          string
		arguments     string
		before, after []sdk.Passage
		asked         int
	}{
		{"nothing changed, or another knowledge", "", before, before, 0},
		{"renamed", "", before, cut("Cards", "guide/plastic.md", text, 1, 1, 1, 1), 0},
		{"moved", "", before, cut("Cards", "old/2023/cards.md", text, 1, 1, 1, 1), 0},
		{"renamed, and the path is shown", `, "path": true`, before, cut("Cards", "guide/plastic.md", text, 1, 1, 1, 1), 4},
		{"renamed without a title", "", nameless, cut("plastic.txt", "guide/plastic.txt", text, 1, 1, 1, 1), 4},
		{"another title", "", before, cut("Plastic", "guide/cards.md", text, 1, 1, 1, 1), 4},
		{"edited", "", before, cut("Cards", "guide/cards.md", strings.Replace(text, "week", "day", 1), 1, 1, 1, 1), 4},
		{"larger chunks, of which two are as before", "", before, cut("Cards", "guide/cards.md", text, 1, 2, 1), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := opened(t, modelserver.Options{}, test.arguments)
			for i, passages := range [][]sdk.Passage{test.before, test.after} {
				want := []int{len(test.before), len(test.before) + test.asked}[i]
				got, err := f.Enrich(t.Context(), passages)
				if err != nil {
					t.Fatal(err)
				}
				if n := f.server.Calls(); n != want {
					t.Errorf("build %d: %d calls so far, want %d", i+1, n, want)
				}
				named := test.arguments != "" || passages[0].Document.Meta["title"] == "cards.txt"
				if shown := strings.Contains(f.server.Asks()[0].Whole(), "\nPath: guide/cards."); i == 0 && shown != named {
					t.Errorf("the path is shown: %v, want %v", shown, named)
				}
				for j, a := range got {
					if want := fmt.Sprintf("It is about %s.", strings.Join(strings.Fields(passages[j].Text()), " ")); a.Context != want {
						t.Errorf("build %d: %q, want %q", i+1, a.Context, want)
					}
				}
			}
		})
	}
}
