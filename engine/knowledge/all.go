package knowledge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Extent returns how many entries there are and roughly how many tokens they have:
// the characters of their texts and contexts, divided by four, as in an estimate. The
// terms that were added for the search do not count, and neither does what a prompt
// writes around a passage. It walks through the store each time.
func (k *Knowledge) Extent(ctx context.Context) (e rule.Extent, err error) {
	characters := 0
	err = k.Entries(ctx, sdk.Scan{Texts: true}, func(entry sdk.Entry) {
		context, _ := sdk.SplitContext(entry.Context)
		e.Entries++
		characters += utf8.RuneCountInString(entry.Text) + utf8.RuneCountInString(context)
	})
	if err != nil {
		return rule.Extent{}, fmt.Errorf("count the tokens of knowledge %q: %w", k.block.Name, err)
	}
	e.Tokens = sdk.EstimateTokens(characters)
	return e, nil
}

// all is all entries, in memory.
type all struct {
	once    sync.Once
	err     error
	entries []sdk.Candidate

	hash   sync.Once
	hashes []uint64 // of the entries' ids
}

// All returns every entry as a candidate that nothing has scored, in the order of
// the documents: by their ids, and within a document by place; rows by their ids.
// So it is the same for the same content, however that came about. It is read
// once, and all of it is held in memory: the caller must not change it.
func (k *Knowledge) All(ctx context.Context) ([]sdk.Candidate, error) {
	e := &k.all
	e.once.Do(func() {
		e.err = k.Entries(ctx, sdk.Scan{Texts: true}, func(entry sdk.Entry) {
			e.entries = append(e.entries, candidate(entry))
		})
		slices.SortFunc(e.entries, units.InOrder)
	})
	if e.err != nil {
		return nil, fmt.Errorf("read all of knowledge %q: %w", k.block.Name, e.err)
	}
	return e.entries, nil
}
