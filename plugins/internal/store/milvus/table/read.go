package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
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

// consistency is what a call asks for, as the SDK says it.
func (t *Table) consistency(l ReadLevel) (level commonpb.ConsistencyLevel, timestamp uint64) {
	switch {
	case l == NewestTable || t.Options.Consistency == "strong":
		return commonpb.ConsistencyLevel_Strong, client.StrongTimestamp
	case t.Options.Consistency == "bounded":
		return commonpb.ConsistencyLevel_Bounded, client.BoundedTimestamp
	case t.Options.Consistency == "session":
		return commonpb.ConsistencyLevel_Session, max(t.Server.written.Load(), client.EventuallyTimestamp)
	}
	return commonpb.ConsistencyLevel_Eventually, client.EventuallyTimestamp
}

// Query returns the rows that an expression selects, at most MaxRows of them, in
// no order.
func (t *Table) Query(ctx context.Context, l ReadLevel, expr string, fields ...string) ([]Found, error) {
	// Without a limit of its own a server may fall back on a small one.
	reply, err := t.query(ctx, l, &milvuspb.QueryRequest{Expr: expr, OutputFields: fields, QueryParams: Pairs("limit", strconv.Itoa(MaxRows))})
	if err != nil {
		return nil, err
	}
	rows, err := ReplyRows(reply.GetFieldsData(), nil, FieldKey)
	found := make([]Found, len(rows))
	for i, r := range rows {
		if found[i], err = decodeRow(r); err != nil {
			return nil, err
		}
	}
	return found, err
}

func (t *Table) query(ctx context.Context, l ReadLevel, r *milvuspb.QueryRequest) (reply *milvuspb.QueryResults, err error) {
	r.CollectionName = t.Name
	err = t.call(ctx, "read rows", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		r.ConsistencyLevel, r.GuaranteeTimestamp = t.consistency(l)
		reply, err = c.Service.Query(ctx, r)
		return err
	})
	return reply, err
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
	reply, err := t.query(ctx, NewestTable, &milvuspb.QueryRequest{Expr: expr, OutputFields: []string{"count(*)"}})
	if err != nil {
		return 0, err
	}
	return CountOfReply(reply)
}

// CountOfReply is the number of rows that a server counted.
func CountOfReply(reply *milvuspb.QueryResults) (int, error) {
	for _, f := range reply.GetFieldsData() {
		if counts := f.GetScalars().GetLongData().GetData(); len(counts) == 1 {
			return int(counts[0]), nil
		}
	}
	return 0, errors.New("the server does not count")
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
func (t *Table) Search(ctx context.Context, expr string, fields []string, vectors *commonpb.PlaceholderValue, field string, limit int) ([][]Found, error) {
	r := SearchRequest{Field: field, Metric: string(entity.IP), Queries: vectors, Expr: expr, Fields: fields, Limit: limit}
	if r.Params = map[string]any{"drop_ratio_search": 0.0}; field == FieldVector {
		r.Params = SearchParams(t.IndexType, t.Options.SearchParams, limit)
	}
	request, err := r.Message(t.Name)
	if err != nil {
		return nil, err
	}
	lists := make([][]Found, request.GetNq())
	err = t.call(ctx, "search", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		request.ConsistencyLevel, request.GuaranteeTimestamp = t.consistency(AsConfigured)
		reply, err := c.Service.Search(ctx, request)
		if err != nil {
			return err
		}
		scored, err := Lists(reply.GetResults(), FieldKey, len(lists))
		for i, list := range scored {
			lists[i] = make([]Found, len(list))
			for j, r := range list {
				if lists[i][j], err = decodeRow(r.ReplyRow); err != nil {
					return err
				}
				lists[i][j].Score = r.Score
			}
		}
		return err
	})
	return lists, err
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
