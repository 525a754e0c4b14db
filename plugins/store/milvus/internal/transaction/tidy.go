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

// tidy removes what nothing refers to: rows that a killed writer left, rows
// that died so long ago that no reader asks for them, parts of old records. It
// reports whether no dead row is left.
func tidy(ctx context.Context, s *snapshot.Snapshot) (bool, error) {
	uncommitted := expression.Between(s.Record.Next, row.SystemSequence)
	n, err := s.Count(ctx, uncommitted)
	if err == nil && n > 0 {
		err = s.Remove(ctx, uncommitted)
	}
	if err != nil {
		return false, err
	}
	used := map[string]bool{snapshot.KeyRecord: true, KeyLease: true}
	for kind, blobs := range map[string][]snapshot.Blob{
		snapshot.KindNote: {s.Record.Note}, snapshot.KindStatistics: s.Record.Statistics, snapshot.KindDead: s.Record.Dead,
	} {
		for _, b := range blobs {
			for _, key := range b.Keys(kind) {
				used[key] = true
			}
		}
	}
	system, err := s.Query(ctx, table.Newest, fmt.Sprintf("%s == %d", row.FieldSequence, row.SystemSequence), row.FieldKey)
	if err != nil {
		return false, err
	}
	var unused []string
	for _, r := range system {
		if !used[r.Key] {
			unused = append(unused, r.Key)
		}
	}
	for part := range slices.Chunk(unused, table.LookUp) {
		if err := s.Remove(ctx, expression.Keys(part)); err != nil {
			return false, err
		}
	}
	if time.Since(time.Unix(s.Record.Time, 0)) < snapshot.Grace {
		return false, nil
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(s.Dead)), table.LookUp) {
		if err := s.Remove(ctx, expression.Numbers(row.FieldSequence, part)); err != nil {
			return false, err
		}
	}
	if s.Record.Floor > 0 {
		err = s.Remove(ctx, expression.Between(0, s.Record.Floor))
	}
	return true, err
}
