package table

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/racflow/racflow/sdk"
)

const (
	// MaxRows is the most that a server returns at a time.
	MaxRows = 16384
	// LookUp is how many rows are read or deleted by their keys at a time.
	LookUp = 500
)

// ReadLevel says how new the rows are that a call sees.
type ReadLevel bool

// The levels: what the config says, and everything that any process has written.
const (
	AsConfigured ReadLevel = false
	NewestTable  ReadLevel = true
)

// Rows are the rows of the table, as new as the level says.
func (t *Table) Rows(l ReadLevel) Rows {
	r := Rows{Collection: t.Name, Key: FieldKey, Level: commonpb.ConsistencyLevel_Eventually, Timestamp: client.EventuallyTimestamp}
	switch {
	case l == NewestTable || t.Options.Consistency == "strong":
		r.Level, r.Timestamp = commonpb.ConsistencyLevel_Strong, client.StrongTimestamp
	case t.Options.Consistency == "bounded":
		r.Level, r.Timestamp = commonpb.ConsistencyLevel_Bounded, client.BoundedTimestamp
	case t.Options.Consistency == "session":
		r.Level, r.Timestamp = commonpb.ConsistencyLevel_Session, max(t.Server.written.Load(), client.EventuallyTimestamp)
	}
	r.Call = func(ctx context.Context, what string, do func(context.Context, Reads) error) error {
		return t.call(ctx, what, func(ctx context.Context, c *client.GrpcClient, _ int) error { return do(ctx, c.Service) })
	}
	return r
}

// Query returns the rows that an expression selects, at most MaxRows of them.
func (t *Table) Query(ctx context.Context, l ReadLevel, expr string, fields ...string) ([]Found, error) {
	rows, _, err := t.Rows(l).Query(ctx, expr, fields, MaxRows)
	found := make([]Found, len(rows))
	for i, r := range rows {
		if found[i], err = Decode(r); err != nil {
			return nil, err
		}
	}
	return found, err
}

// Notes reads the rows whose keys begin with a prefix, which ends with "-": key to text.
func (t *Table) Notes(ctx context.Context, prefix string) (map[string]string, error) {
	end := strings.TrimSuffix(prefix, "-") + "." // the character behind
	rows, err := t.Query(ctx, NewestTable, fmt.Sprintf("%s >= %q and %s < %q", FieldKey, prefix, FieldKey, end), FieldKey, FieldText)
	texts := map[string]string{}
	for _, r := range rows {
		texts[r.Key] = r.Entry.Text
	}
	return texts, err
}

// Count returns how many rows an expression selects.
func (t *Table) Count(ctx context.Context, expr string) (int, error) {
	return t.Rows(NewestTable).Count(ctx, expr)
}

// Walk calls f with the rows behind a key that an expression selects, in the order of their keys,
// until it returns false.
func (t *Table) Walk(ctx context.Context, l ReadLevel, after, expr string, fields []string, f func(Found) bool) error {
	from := any(after)
	if after == "" {
		from = nil
	}
	return t.Rows(l).Walk(ctx, from, expr, fields, slices.Contains(fields, FieldVector), func(r *ReplyRow) (bool, error) {
		found, err := Decode(r)
		return err == nil && f(found), err
	})
}

// LostRows is the error of a server that has only some of the rows that it took.
func LostRows(have, want int) error {
	return sdk.Transient(fmt.Errorf("the server has %d of %d rows that were written: it lost some", have, want), 0)
}

// searchParams are the parameters of a search in an index for the best limit rows: those
// that are given, and what finds so many.
func searchParams(index string, given map[string]string, limit int) map[string]any {
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
