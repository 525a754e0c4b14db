package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
)

const (
	// MaxRows is the most that a server returns at a time.
	MaxRows = 16384
	// LookUp is how many rows are read or deleted by their keys or numbers at a time.
	LookUp = 500
	// VectorWindow is how many rows are read at a time with their vectors: Milvus
	// Lite 2 takes time that grows with the square of the rows.
	VectorWindow = 250
	plainWindow  = 1000
)

// Level says how new the rows are that a call sees.
type Level bool

// The levels: what the config says, and everything that any process has written.
const (
	AsConfigured Level = false
	Newest       Level = true
)

var levels = map[string]entity.ConsistencyLevel{
	"strong": entity.ClStrong, "session": entity.ClSession, "bounded": entity.ClBounded, "eventually": entity.ClEventually,
}

func (t *Table) option(l Level) client.SearchQueryOptionFunc {
	if l == Newest {
		return client.WithSearchQueryConsistencyLevel(entity.ClStrong)
	}
	return client.WithSearchQueryConsistencyLevel(levels[t.Options.Consistency])
}

// Query returns the rows that an expression selects, at most MaxRows of them, in
// no order.
func (t *Table) Query(ctx context.Context, l Level, expr string, fields ...string) ([]row.Found, error) {
	var rows []row.Found
	err := t.call(ctx, "read rows", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		// Without a limit of its own a server may fall back on a small one.
		result, err := c.Query(ctx, t.Name, nil, expr, fields, t.option(l), client.WithLimit(MaxRows))
		if err == nil {
			rows, err = row.Decode(result)
		} else if server.IsEmpty(err) {
			rows, err = nil, nil
		}
		return err
	})
	return rows, err
}

// System reads system rows: key to text.
func (t *Table) System(ctx context.Context, keys ...string) (map[string]string, error) {
	rows, err := t.Query(ctx, Newest, expression.Keys(keys), row.FieldKey, row.FieldText)
	texts := map[string]string{}
	for _, r := range rows {
		texts[r.Key] = r.Entry.Text
	}
	return texts, err
}

// Count returns how many rows an expression selects. Milvus Lite 2 counts a row
// again that was written twice.
func (t *Table) Count(ctx context.Context, expr string) (int, error) {
	n := 0
	err := t.call(ctx, "count rows", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		result, err := c.Query(ctx, t.Name, nil, expr, []string{"count(*)"}, t.option(Newest))
		if err != nil {
			return err
		}
		column, ok := result.GetColumn("count(*)").(*entity.ColumnInt64)
		if !ok || column.Len() != 1 {
			return errors.New("the server does not count")
		}
		n = int(column.Data()[0])
		return nil
	})
	return n, err
}

// Walk calls f with the rows whose positions are at least from and below to, and
// that an expression selects, in the order of their positions. Windows of positions
// need neither an order nor an iterator of the server.
func (t *Table) Walk(ctx context.Context, l Level, from, to int64, expr string, fields []string, f func(row.Found) error) error {
	smallest := int64(plainWindow)
	if slices.Contains(fields, row.FieldVector) {
		smallest = VectorWindow
	}
	window := smallest
	for from < to {
		end := min(from+window, to)
		positions := fmt.Sprintf(`%s >= "%s" and %s < "%s"`, row.FieldKey, row.Digits(from), row.FieldKey, row.Digits(end))
		rows, err := t.Query(ctx, l, expression.And(positions, expr), fields...)
		if err != nil {
			return err
		}
		SortByPosition(rows)
		rows = slices.CompactFunc(rows, func(a, b row.Found) bool { return a.Sequence == b.Sequence })
		for _, r := range rows {
			if err := f(r); err != nil {
				return err
			}
		}
		from = end
		if int64(len(rows)) < smallest/4 {
			window = min(2*window, 4*smallest)
		} else {
			window = smallest
		}
	}
	return nil
}

// SortByPosition sorts rows as a scan returns them.
func SortByPosition(rows []row.Found) {
	slices.SortFunc(rows, func(a, b row.Found) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Sequence, b.Sequence))
	})
}

// FillDetails reads what was left out of the details of rows.
func (t *Table) FillDetails(ctx context.Context, l Level, rows []row.Found) error {
	at := map[int64][]int{}
	var keys []string
	for i, r := range rows {
		if r.Complete {
			continue
		}
		if at[r.Sequence] == nil {
			keys = append(keys, r.Key)
		}
		at[r.Sequence] = append(at[r.Sequence], i)
	}
	for part := range slices.Chunk(keys, LookUp) {
		texts, err := t.Query(ctx, l, expression.Keys(part), row.FieldKey, row.FieldID, row.FieldLabel, row.FieldText, row.FieldContext)
		if err != nil {
			return err
		}
		for _, r := range texts {
			for _, i := range at[r.Sequence] {
				rows[i].Complete, rows[i].Entry.ID, rows[i].Entry.Label = true, r.Entry.ID, r.Entry.Label
				if t.Analyzer != nil {
					rows[i].Counts = bm25.CountWords(*t.Analyzer, r.Entry.Context, r.Entry.Text)
				}
			}
			delete(at, r.Sequence)
		}
	}
	if len(at) > 0 {
		return LostRows(len(rows)-len(at), len(rows))
	}
	return nil
}

// LostRows is the error of a server that has only some of the rows that it took.
func LostRows(have, want int) error {
	return sdk.Transient(fmt.Errorf("the server has %d of %d rows that were written: it lost some", have, want), 0)
}
