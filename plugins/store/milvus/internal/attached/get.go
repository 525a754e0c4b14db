package attached

import (
	"context"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/sdk"
)

// Get returns entries by their ids.
func (c *Collection) Get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	entries := make([]sdk.Entry, len(ids))
	at := map[string][]int{}
	var unique []string
	for i, id := range ids {
		if at[id] == nil {
			unique = append(unique, id)
		}
		at[id] = append(at[id], i)
	}
	set := func(r *column.Row) {
		for _, i := range at[c.IDOf(r)] {
			entries[i] = c.Entry(r, true)
		}
	}
	fields := c.Outputs(true, true, false)
	for part := range slices.Chunk(unique, plainWindow/4) {
		expr, n := mapping.OneOf(c.ID, part)
		if n == 0 {
			continue
		}
		found, _, err := c.query(ctx, expr, fields, maxRows)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			set(r)
		}
	}
	// Ids that no literal can name are looked for among keys that begin alike, or
	// among all rows.
	for _, id := range unique {
		if _, ok := expression.Quote(id); ok || entries[at[id][0]].ID != "" {
			continue
		}
		from, isKey := "", c.ID.Field == c.Key
		if isKey {
			from = beginning(id)
		}
		err := c.walk(ctx, from, expression.Condition{}, fields, func(r *column.Row) bool {
			set(r)
			return entries[at[id][0]].ID == "" && !(isKey && c.KeyOf(r) > id)
		})
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}
