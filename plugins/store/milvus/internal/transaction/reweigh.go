package transaction

import (
	"context"
	"maps"
	"slices"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
)

// drift is how far the average length may be from the one that the words of a
// row are weighed with.
const (
	drift     = 1.25
	halfDrift = 1 + (drift-1)/2
)

// reweigh puts rows again whose words are weighed with an average that is too
// far from today's, and returns the numbers of the rows that they replace.
func (tx *transaction) reweigh(ctx context.Context, dead []int64, replaced bool) ([]int64, error) {
	if tx.base.Analyzer == nil {
		return nil, nil
	}
	average := tx.average()
	var in snapshot.Record
	if !replaced {
		in = tx.base.Record
	}
	tx.widen(&in, false)
	if in.Lowest == 0 || average <= drift*in.Lowest && in.Highest <= drift*average {
		return nil, nil
	}
	gone := map[int64]bool{}
	for _, n := range slices.Concat(dead, tx.superseded, slices.Collect(maps.Keys(tx.base.Dead))) {
		gone[n] = true
	}
	keys, err := tx.outdated(ctx, gone, average)
	if err != nil {
		return nil, err
	}
	lowest, highest := in.Lowest, in.Highest
	tx.lowest, tx.highest = 0, 0
	numbers := make([]int64, 0, len(keys))
	for part := range slices.Chunk(keys, table.VectorWindow) {
		rows, err := tx.base.Query(ctx, table.Newest, expression.Keys(part), slices.Concat(row.FieldsScan, row.FieldsTexts, []string{row.FieldVector})...)
		if err != nil {
			return nil, err
		}
		table.SortByPosition(rows)
		for _, r := range rows {
			numbers = append(numbers, r.Sequence)
			meta, err := row.EncodeMeta(r.Entry.Meta)
			if err != nil {
				return nil, err
			}
			r.Entry.Vector = r.Entry.Vector[:tx.base.Schema.Dimension]
			if err := tx.add(tx.newRow(r.Entry, meta, r.Position)); err != nil { // counted already
				return nil, err
			}
		}
	}
	if len(numbers) != len(keys) {
		return nil, table.LostRows(len(numbers), len(keys))
	}
	if err := tx.send(); err != nil {
		return nil, err
	}
	// The rows that were left alone are within the half of the drift.
	tx.lowest, tx.highest = min(max(lowest, average/halfDrift), average), max(min(highest, average*halfDrift), average)
	return numbers, nil
}

// outdated lists the keys of the living rows that are due.
func (tx *transaction) outdated(ctx context.Context, gone map[int64]bool, average float64) ([]string, error) {
	var keys []string
	soFar := *tx.base
	soFar.Record.Next = tx.next
	err := soFar.Walk(ctx, table.Newest, 0, tx.next, soFar.Expression(), []string{row.FieldKey, row.FieldDetails}, func(r row.Found) error {
		if !gone[r.Sequence] && (r.Average*halfDrift < average || average*halfDrift < r.Average) {
			keys = append(keys, r.Key)
		}
		return nil
	})
	return keys, err
}
