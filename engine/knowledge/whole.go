package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Extent returns how many entries there are and roughly how many tokens they have:
// the characters of their texts, and of what situates them, divided by four, as in
// an estimate. The terms that were added for the search do not count, and neither
// does what a prompt writes around a passage. It walks through the store each time.
func (k *Knowledge) Extent(ctx context.Context) (e rule.Extent, err error) {
	characters := 0
	err = scan(ctx, k.store, k.main, sdk.Scan{Texts: true}, func(entry sdk.Entry) {
		situating, _ := sdk.SplitContext(entry.Context)
		e.Entries++
		characters += utf8.RuneCountInString(entry.Text) + utf8.RuneCountInString(situating)
	})
	if err != nil {
		return rule.Extent{}, fmt.Errorf("count the tokens of knowledge %q: %w", k.block.Name, err)
	}
	e.Tokens = sdk.EstimateTokens(characters)
	return e, nil
}

// entries are all that there are, in memory.
type entries struct {
	once sync.Once
	err  error
	all  []sdk.Candidate
}

// All returns every entry as a candidate that nothing has scored, in the order of
// the documents: by their ids, and within a document by place; rows by their ids.
// So it is the same for the same content, however that came about. It is read
// once, and all of it is held in memory: the caller must not change it.
func (k *Knowledge) All(ctx context.Context) ([]sdk.Candidate, error) {
	e := k.all
	e.once.Do(func() {
		e.err = scan(ctx, k.store, k.main, sdk.Scan{Texts: true}, func(entry sdk.Entry) {
			e.all = append(e.all, sdk.Candidate{
				ID: entry.ID, Text: entry.Text, Label: entry.Label, Context: entry.Context, Meta: entry.Meta,
				Dense: sdk.Unscored, Lexical: sdk.Unscored,
			})
		})
		slices.SortFunc(e.all, func(a, b sdk.Candidate) int {
			documentA, startA := placed(a)
			documentB, startB := placed(b)
			return cmp.Or(cmp.Compare(documentA, documentB), cmp.Compare(startA, startB), cmp.Compare(a.ID, b.ID))
		})
	})
	if e.err != nil {
		return nil, fmt.Errorf("read all of knowledge %q: %w", k.block.Name, e.err)
	}
	return e.all, nil
}

// placed returns the document that an entry is of and where in it it begins; a row
// is a document of its own.
func placed(c sdk.Candidate) (document string, start float64) {
	document, ok := c.Meta[metaDocument].(string)
	if start, isNumber := c.Meta[metaStart].(float64); ok && isNumber {
		return document, start
	}
	return c.ID, 0
}
