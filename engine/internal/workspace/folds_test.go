package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// splitOf splits a knowledge of two files. Each third row of the first file has a copy in the second.
func splitOf(t *testing.T, count int) *split {
	t.Helper()
	dir := t.TempDir()
	var first, second strings.Builder
	for i := range 90 {
		text := fmt.Sprintf("how is item %d, please", i)
		fmt.Fprintf(&first, "a%d\t%s\tlabel %d\n", i, text, i%7)
		if i%3 == 0 {
			fmt.Fprintf(&second, "b%d\t%s!\tlabel %d\n", i, strings.ToUpper(text), i%7)
		}
	}
	second.WriteString("c\tno label\t\nd\tthe only one\trare\n")
	block := &pipeline.Knowledge{Name: "k"}
	for n, rows := range []*strings.Builder{&first, &second} {
		path := filepath.Join(dir, fmt.Sprintf("%d.tsv", n))
		must.Do(t, os.WriteFile(path, []byte("id\ttext\tlabel\n"+rows.String()), 0o600))
		block.Sources = append(block.Sources, pipeline.Source{Path: path, ID: "id", Text: "text", Label: "label"})
	}
	s, err := splitKnowledge(t.Context(), []*pipeline.Knowledge{block}, count)
	must.Do(t, err)
	return s
}

// TestSplit: the folds together have each labelled row once. No fold has a copy of a row of its
// knowledge, and each has its share of every label.
func TestSplit(t *testing.T) {
	const count = 4
	s := splitOf(t, count)
	seen := map[string]int{}
	texts := map[string][count + 1]int{} // distinct texts of a label, by fold
	for fold := 1; fold <= count; fold++ {
		keys := map[string]bool{}
		for _, row := range s.itemsOf(fold, 0) {
			seen[row.ID]++
			if key := copyKey(row.Text); !keys[key] {
				keys[key] = true
				of := texts[row.Label]
				of[fold]++
				texts[row.Label] = of
			}
		}
		for _, row := range s.without(0, foldOptions{fold: fold}) {
			if keys[copyKey(row.Text)] {
				t.Errorf("fold %d: the knowledge has a copy of an item: %q", fold, row.Text)
			}
		}
		if left, out := len(s.without(0, foldOptions{fold: fold})), len(s.itemsOf(fold, 0)); left+out != len(s.rows[0]) {
			t.Errorf("fold %d has %d rows and its knowledge %d, of %d", fold, out, left, len(s.rows[0]))
		}
	}
	if len(seen) != 121 {
		t.Errorf("%d rows are items, want 121", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("row %s is an item %d times", id, n)
		}
	}
	for label, of := range texts {
		if least, most := min(of[1], of[2], of[3], of[4]), max(of[1], of[2], of[3], of[4]); most > least+1 {
			t.Errorf("%s: texts by fold %v", label, of[1:])
		}
	}
	if len(s.labels) != 7 {
		t.Errorf("labels of several folds: %q", s.labels)
	}
}

// TestSplitLimits: a limit bounds the items of all folds together. A size bounds the rows of each label;
// a larger size includes the rows of a smaller one.
func TestSplitLimits(t *testing.T) {
	s := splitOf(t, 3)
	items := 0
	for fold := 1; fold <= 3; fold++ {
		items += len(s.itemsOf(fold, 20))
	}
	if items != 20 || len(s.itemsOf(0, 20)) != 20 {
		t.Errorf("%d items of all folds, %d without folds; want 20", items, len(s.itemsOf(0, 20)))
	}
	var before map[string]bool
	for _, most := range []int{8, 4, 1} {
		of, ids := map[string]int{}, map[string]bool{}
		for _, row := range s.without(0, foldOptions{fold: 2, most: most}) {
			if of[row.Label]++; row.Label != "" && of[row.Label] > most {
				t.Errorf("%s has more than %d rows", row.Label, most)
			}
			if ids[row.ID] = true; before != nil && !before[row.ID] {
				t.Errorf("row %s is among %d of its label, and not among more", row.ID, most)
			}
		}
		if before = ids; of["label 3"] != most {
			t.Errorf("label 3 has %d rows, want %d", of["label 3"], most)
		}
	}
}

func TestCopyKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Where's my card?", "wheres  my CARD", true},
		{"C++", "C", false},
		{"?!", "...", false},
		{"cafe\u0301", "caf\u00e9", true},
	} {
		if same := copyKey(c.a) == copyKey(c.b); same != c.same {
			t.Errorf("%q and %q are copies: %v", c.a, c.b, same)
		}
	}
}
