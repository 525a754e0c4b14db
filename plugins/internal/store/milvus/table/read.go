package table

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
)

const (
	// MaxRows is the most rows that a server returns at a time.
	MaxRows = 16384
	// LookUp is how many rows are read or deleted by their keys at a time.
	LookUp = 500
)

// Rows returns the rows of the table, with the config's consistency. newest: including all completed writes of any
// process.
func (t *Table) Rows(newest bool) Rows {
	r := Rows{Collection: t.Name, Key: FieldKey, Level: commonpb.ConsistencyLevel_Eventually, Timestamp: client.EventuallyTimestamp, Call: t.call}
	switch {
	case newest || t.Options.Consistency == "strong":
		r.Level, r.Timestamp = commonpb.ConsistencyLevel_Strong, client.StrongTimestamp
	case t.Options.Consistency == "bounded":
		r.Level, r.Timestamp = commonpb.ConsistencyLevel_Bounded, client.BoundedTimestamp
	case t.Options.Consistency == "session":
		r.Level, r.Timestamp = commonpb.ConsistencyLevel_Session, max(t.Server.written.Load(), client.EventuallyTimestamp)
	}
	if !t.OnServer {
		r.Call = func(context.Context, string, Call) error { return nil }
	}
	return r
}

// Notes reads the rows whose keys begin with a prefix that ends with "-". It returns key to text.
func (t *Table) Notes(ctx context.Context, prefix string) (map[string]string, error) {
	end := strings.TrimSuffix(prefix, "-") + "." // the character behind
	between := fmt.Sprintf("%s >= %q and %s < %q", FieldKey, prefix, FieldKey, end)
	rows, _, err := t.Rows(true).Query(ctx, between, []string{FieldKey, FieldText}, MaxRows)
	texts := map[string]string{}
	for _, r := range rows {
		key, _ := r.Value(FieldKey).(string)
		texts[key], _ = r.Value(FieldText).(string)
	}
	return texts, err
}

// Count returns the number of rows.
func (t *Table) Count(ctx context.Context) (int, error) { return t.Rows(true).Count(ctx, "") }

// SearchParams returns the parameters of an index search for the best limit rows: the given ones, and defaults that
// find that many rows.
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
	for _, name := range []string{"ef", "search_list"} { // must not be below the limit
		if n, ok := p[name].(int); ok {
			p[name] = max(n, limit)
		}
	}
	return p
}
