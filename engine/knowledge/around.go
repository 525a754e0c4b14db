package knowledge

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/sdk"
)

// Around returns a candidate with the text of up to n chunks before and after it in its
// document: it begins and ends where they do. A row, or a chunk that is not there any
// more, is returned as it is.
func (k *Knowledge) Around(ctx context.Context, c sdk.Candidate, n int) (sdk.Candidate, error) {
	ids := units.Around(c, n)
	at := slices.Index(ids, c.ID)
	if at < 0 {
		return c, nil
	}
	entries, err := k.store.Get(ctx, k.entries, ids)
	if err != nil {
		return c, fmt.Errorf("read what stands around %s: %w", c.ID, err)
	}
	missing := func(e sdk.Entry) bool { return e.ID == "" }
	last := slices.IndexFunc(entries[at:], missing)
	if last < 0 {
		last = len(entries) - at
	}
	if last == 0 {
		return c, nil
	}
	first := at
	for first > 0 && !missing(entries[first-1]) {
		first--
	}
	return units.Widen(c, entries[first:at+last]), nil
}
