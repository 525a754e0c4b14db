package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
)

// Insert writes rows of entries, with keys that no row has, and weighs their words
// by a formula. A repeated attempt is an upsert, which cannot make a row twice.
func (t *Table) Insert(ctx context.Context, rows []row.Row, formula bm25.Formula) error {
	return t.write(ctx, rows, formula, false)
}

// PutSystem writes system rows in place of those with the same keys. They are
// few and large.
func (t *Table) PutSystem(ctx context.Context, rows ...row.Row) error {
	for part := range slices.Chunk(rows, 64) {
		if err := t.write(ctx, part, bm25.Formula{}, true); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) write(ctx context.Context, rows []row.Row, formula bm25.Formula, replace bool) error {
	columns := row.Columns(rows, t.Schema, formula)
	return t.call(ctx, fmt.Sprintf("write %d rows", len(rows)), func(ctx context.Context, c *client.GrpcClient, attempt int) error {
		write := c.Upsert
		if !replace && attempt == 0 {
			write = c.Insert
		}
		keys, err := write(ctx, t.Name, "", columns...)
		if err == nil && keys.Len() != len(rows) {
			err = fmt.Errorf("the server took %d of %d rows", keys.Len(), len(rows))
		}
		return err
	})
}

// Remove deletes the rows that an expression selects.
func (t *Table) Remove(ctx context.Context, expr string) error {
	return t.call(ctx, "delete rows", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.Delete(ctx, t.Name, "", expr)
	})
}

// Flush asks the server to end its growing segments, so that they get their
// index. Nothing depends on it, so it is tried once.
func (t *Table) Flush(ctx context.Context) error {
	return t.Server.Once(ctx, func(ctx context.Context, c *client.GrpcClient) error { return c.Flush(ctx, t.Name, true) })
}
