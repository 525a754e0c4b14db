package knowledge

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// together is how many entries are read in one call. With the longest texts that a store takes they
// fit a message.
const together = 256

// Get returns the entries with the given ids as candidates that nothing has scored, in the
// order of the ids. One that is not there any more has an empty ID.
func (k *Knowledge) Get(ctx context.Context, ids []string) ([]sdk.Candidate, error) {
	all := make([]sdk.Candidate, 0, len(ids))
	for part := range slices.Chunk(ids, together) {
		entries, err := k.store.Get(ctx, k.entries, part)
		if err != nil {
			return nil, fmt.Errorf("read entries of knowledge %q: %w", k.block.Name, err)
		}
		for _, e := range entries {
			all = append(all, candidate(e))
		}
	}
	return all, nil
}

func candidate(e sdk.Entry) sdk.Candidate {
	return sdk.Candidate{ID: e.ID, Text: e.Text, Label: e.Label, Context: e.Context, Meta: e.Meta, Dense: sdk.Unscored, Lexical: sdk.Unscored}
}

// ReadLabels returns the labels of the entries, sorted, by walking through the store.
func (k *Knowledge) ReadLabels(ctx context.Context) ([]string, error) {
	labels := map[string]bool{}
	err := k.Entries(ctx, sdk.Scan{}, func(e sdk.Entry) {
		if e.Label != "" {
			labels[e.Label] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the labels of knowledge %q: %w", k.block.Name, err)
	}
	return slices.Sorted(maps.Keys(labels)), nil
}
