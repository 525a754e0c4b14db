package transaction

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
)

// tidy removes what nothing refers to: rows that other turns left, rows that died so
// long ago that no reader asks for them, and system rows of earlier turns. It reports
// whether no dead row is left. Removing by numbers and keys of earlier turns may come
// late as well: no later turn uses them.
func tidy(ctx context.Context, s *snapshot.Snapshot, t *turn) (bool, error) {
	if t.disputed {
		return false, nil
	}
	for _, gap := range s.Record.Gaps {
		left := expression.Between(gap.From, gap.To)
		n, err := s.Count(ctx, left)
		if err == nil && n > 0 {
			err = s.Remove(ctx, left)
		}
		if err != nil {
			return false, err
		}
	}
	if err := tidySystem(ctx, s, t); err != nil {
		return false, err
	}
	if time.Since(time.Unix(s.Record.Time, 0)) < settled {
		return false, nil
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(s.Dead)), table.LookUp) {
		if err := s.Remove(ctx, expression.Numbers(row.FieldSequence, part)); err != nil {
			return false, err
		}
	}
	if s.Record.Floor > 0 {
		return true, s.Remove(ctx, expression.Between(0, s.Record.Floor))
	}
	return true, nil
}

func tidySystem(ctx context.Context, s *snapshot.Snapshot, t *turn) error {
	used := s.Record.Keys()
	system, err := s.Query(ctx, table.Newest, fmt.Sprintf("%s == %d", row.FieldSequence, row.SystemSequence), row.FieldKey)
	if err != nil {
		return err
	}
	var unused []string
	for _, r := range system {
		if turn, err := snapshot.KeyTurn(r.Key); err == nil && turn < t.Turn && !used[r.Key] {
			unused = append(unused, r.Key)
		}
	}
	for part := range slices.Chunk(unused, table.LookUp) {
		if err := s.Remove(ctx, expression.Keys(part)); err != nil {
			return err
		}
	}
	return nil
}
