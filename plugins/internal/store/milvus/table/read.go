package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

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

// ReadLevel says how new the rows are that a call sees.
type ReadLevel bool

// The levels: what the config says, and everything that any process has written.
const (
	AsConfigured ReadLevel = false
	NewestTable  ReadLevel = true
)

var levels = map[string]entity.ConsistencyLevel{
	"strong": entity.ClStrong, "session": entity.ClSession, "bounded": entity.ClBounded, "eventually": entity.ClEventually,
}

func (t *Table) option(l ReadLevel) client.SearchQueryOptionFunc {
	if l == NewestTable {
		return client.WithSearchQueryConsistencyLevel(entity.ClStrong)
	}
	return client.WithSearchQueryConsistencyLevel(levels[t.Options.Consistency])
}

// Query returns the rows that an expression selects, at most MaxRows of them, in
// no order.
func (t *Table) Query(ctx context.Context, l ReadLevel, expr string, fields ...string) ([]Found, error) {
	var rows []Found
	err := t.call(ctx, "read rows", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		// Without a limit of its own a server may fall back on a small one.
		result, err := c.Query(ctx, t.Name, nil, expr, fields, t.option(l), client.WithLimit(MaxRows))
		if err == nil {
			rows, err = DecodeRows(result)
		} else if IsEmpty(err) {
			rows, err = nil, nil
		}
		return err
	})
	return rows, err
}

// System reads system rows: key to text.
func (t *Table) System(ctx context.Context, keys ...string) (map[string]string, error) {
	rows, err := t.Query(ctx, NewestTable, Keys(keys), FieldKey, FieldText)
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
		result, err := c.Query(ctx, t.Name, nil, expr, []string{"count(*)"}, t.option(NewestTable))
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

// Walk calls f with the rows whose sequence numbers are at least from and below to, and
// that an expression selects, in the order of the numbers. Windows of numbers need
// neither an order nor an iterator of the server.
func (t *Table) Walk(ctx context.Context, l ReadLevel, from, to int64, expr string, fields []string, f func(Found) error) error {
	smallest := int64(plainWindow)
	if slices.Contains(fields, FieldVector) {
		smallest = VectorWindow
	}
	window := smallest
	for from < to {
		end := min(from+window, to)
		keys := fmt.Sprintf(`%s >= "%s" and %s < "%s"`, FieldKey, RowKey(from), FieldKey, RowKey(end))
		rows, err := t.Query(ctx, l, And(keys, expr), fields...)
		if err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b Found) int { return cmp.Compare(a.Sequence, b.Sequence) })
		rows = slices.CompactFunc(rows, func(a, b Found) bool { return a.Sequence == b.Sequence })
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

// FillDetails reads what was left out of the details of rows.
func (t *Table) FillDetails(ctx context.Context, l ReadLevel, rows []Found) error {
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
		texts, err := t.Query(ctx, l, Keys(part), FieldKey, FieldID, FieldLabel, FieldText, FieldContext)
		if err != nil {
			return err
		}
		for _, r := range texts {
			for _, i := range at[r.Sequence] {
				rows[i].Complete, rows[i].Entry.ID, rows[i].Entry.Label = true, r.Entry.ID, r.Entry.Label
				if t.Analyzer != nil {
					rows[i].Counts = CountWords(*t.Analyzer, r.Entry.Context, r.Entry.Text)
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

// Search returns for each vector the best rows that an expression selects, at
// most limit of them, best first, with the fields and with scores by the inner
// product.
func (t *Table) Search(ctx context.Context, expr string, fields []string, vectors []entity.Vector, field string, limit int) ([][]Found, error) {
	lists := make([][]Found, len(vectors))
	err := t.call(ctx, "search", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		results, err := c.Search(ctx, t.Name, nil, expr, fields, vectors, field, entity.IP, limit, t.params(field, limit), t.option(AsConfigured))
		if err != nil {
			if IsEmpty(err) {
				return nil
			}
			return err
		}
		// Some servers return no result at all where nothing matched.
		if len(results) != len(vectors) && len(results) > 0 {
			return fmt.Errorf("the server returned %d results for %d queries", len(results), len(vectors))
		}
		for i := range results {
			if lists[i], err = decodeResult(&results[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return lists, err
}

func decodeResult(r *client.SearchResult) ([]Found, error) {
	if r.ResultCount == 0 || r.Err != nil && IsEmpty(r.Err) {
		return nil, nil
	}
	if r.Err != nil {
		return nil, r.Err
	}
	keys, ok := r.IDs.(*entity.ColumnVarChar)
	if !ok || keys.Len() != r.ResultCount || len(r.Scores) != r.ResultCount {
		return nil, errors.New("the server returned scores without keys")
	}
	named := entity.NewColumnVarChar(FieldKey, keys.Data())
	rows, err := DecodeRows(append([]entity.Column{named}, r.Fields...))
	for i := range rows {
		rows[i].Score = r.Scores[i]
	}
	return rows, err
}

// searchParams are the parameters of a search as the SDK takes them.
type searchParams map[string]any

// Params implements entity.SearchParam; its other methods are for searches within
// a radius, which this package does not make.
func (p searchParams) Params() map[string]any      { return maps.Clone(p) }
func (p searchParams) AddRadius(radius float64)    { p["radius"] = radius }
func (p searchParams) AddRangeFilter(edge float64) { p["range_filter"] = edge }

// params are those of a search in a vector field.
func (t *Table) params(field string, limit int) searchParams {
	if field == FieldWords {
		return searchParams{"drop_ratio_search": 0.0}
	}
	return SearchParams(t.IndexType, t.Options.SearchParams, limit)
}

// SearchParams are the parameters of a search in an index for the best limit rows: those
// that are given, and what finds so many.
func SearchParams(index string, given map[string]string, limit int) map[string]any {
	p := map[string]any{}
	switch index {
	case "HNSW":
		p["ef"] = max(limit+limit/2, 128)
	case "DISKANN":
		p["search_list"] = max(limit+limit/2, 128)
	case "IVF_FLAT", "IVF_SQ8":
		p["nprobe"] = 16
	}
	for name, text := range given {
		p[name] = text
		if n, err := strconv.Atoi(text); err == nil {
			p[name] = n
		} else if f, err := strconv.ParseFloat(text, 64); err == nil {
			p[name] = f
		}
	}
	for _, name := range []string{"ef", "search_list"} { // may not be below the limit
		if n, ok := p[name].(int); ok {
			p[name] = max(n, limit)
		}
	}
	return p
}

// CheckQuery reports a query that cannot be searched in vectors of a dimension.
func CheckQuery(q sdk.Query, dimension int, needsVector bool) error {
	switch x := q.Vector; {
	case len(x) == 0 && needsVector:
		return errors.New("the query has no vector")
	case len(x) > 0 && len(x) != dimension:
		return fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), dimension)
	case !Finite(x):
		return errors.New("the query's vector has NaN or an infinity in it")
	}
	if q.Filter == nil {
		return nil
	}
	return q.Filter.Check()
}
