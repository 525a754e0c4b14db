package knowledge

import (
	"context"
	"fmt"
	"iter"
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
	return k.backing.Scale(e), nil
}

// all is entries in memory.
type all struct {
	once    sync.Once
	err     error
	entries []sdk.Candidate

	hash   sync.Once
	hashes []uint64 // of the entries' ids
}

// read reads entries once, in the order of All.
func (a *all) read(pages func() iter.Seq2[[]sdk.Entry, error]) ([]sdk.Candidate, error) {
	a.once.Do(func() {
		a.err = each(pages(), func(entry sdk.Entry) { a.entries = append(a.entries, candidate(entry)) })
		slices.SortFunc(a.entries, units.InOrder)
	})
	return a.entries, a.err
}

// All returns every entry as a candidate that nothing has scored, in the order of
// the documents: by their ids, and within a document by place; rows by their ids.
// So it is the same for the same content, however that came about. It is read
// once, and all of it is held in memory: the caller must not change it.
func (k *Knowledge) All(ctx context.Context) ([]sdk.Candidate, error) {
	found, err := k.all.read(func() iter.Seq2[[]sdk.Entry, error] { return k.backing.Whole(ctx, sdk.Scan{Texts: true}) })
	if err != nil {
		return nil, fmt.Errorf("read all of knowledge %q: %w", k.block.Name, err)
	}
	return found, nil
}
