package transaction

import (
	"context"
	"maps"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
)

// supersede finds the rows that the transaction replaces or deletes, counts
// them out of the statistics, and returns the numbers of those of earlier commits.
func (tx *transaction) supersede(ctx context.Context) ([]int64, error) {
	if err := tx.flush(ctx); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(tx.superseded, table.LookUp) {
		rows, err := tx.query(ctx, expression.Numbers(row.FieldSequence, part))
		if err != nil {
			return nil, err
		}
		if len(rows) != len(part) {
			return nil, table.LostRows(len(rows), len(part))
		}
		tx.countOut(rows)
	}
	if tx.base.Record.Entries == 0 {
		return nil, nil
	}
	var dead []int64
	for part := range slices.Chunk(slices.Collect(maps.Keys(tx.latest)), table.LookUp) {
		rows, err := tx.query(ctx, expression.And(tx.base.Expression(), expression.Numbers(row.FieldIDHash, part)))
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(r row.Found) bool { return tx.base.IsDead(r.Sequence) })
		for _, r := range rows {
			dead = append(dead, r.Sequence)
		}
		tx.countOut(rows)
	}
	return dead, nil
}

// query reads what countOut needs of rows.
func (tx *transaction) query(ctx context.Context, expr string) ([]row.Found, error) {
	fields := []string{row.FieldKey}
	if tx.base.Analyzer != nil {
		fields = append(fields, row.FieldDetails)
	}
	rows, err := tx.base.Query(ctx, table.Newest, expr, fields...)
	if err == nil && tx.base.Analyzer != nil {
		err = tx.base.FillDetails(ctx, table.Newest, rows)
	}
	return rows, err
}

func (tx *transaction) countOut(rows []row.Found) {
	tx.entries -= len(rows)
	for _, r := range rows {
		tx.count(r.Counts, -1)
	}
}

// verify checks that the server has every row of the transaction: one that was
// killed may have lost some.
func (tx *transaction) verify(ctx context.Context) error {
	expr := expression.Between(tx.first, tx.next)
	n, err := tx.base.Count(ctx, expr)
	if err != nil || n == tx.rows {
		return err
	}
	seen := map[int64]bool{} // a count may be too high
	err = tx.base.Walk(ctx, table.Newest, 0, tx.next, expr, []string{row.FieldKey}, func(r row.Found) error {
		seen[r.Sequence] = true
		return nil
	})
	if err == nil && len(seen) != tx.rows {
		err = table.LostRows(len(seen), tx.rows)
	}
	return err
}
