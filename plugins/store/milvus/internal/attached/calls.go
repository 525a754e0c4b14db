package attached

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"
)

// maxRows is the most that a server returns at a time.
const maxRows = 16384

// query returns rows that an expression selects, in the order of their keys: the
// first limit of them. It also returns about how many bytes they took.
func (c *Collection) query(ctx context.Context, expr string, fields []string, limit int) ([]*record, int, error) {
	var all []*record
	size := 0
	err := c.call(ctx, "read rows of "+c.name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{
			CollectionName: c.name, PartitionNames: c.arguments.Partitions, Expr: expr, OutputFields: fields, UseDefaultConsistency: true,
			// Without these two a server may return any rows, in any order.
			QueryParams: pairs(map[string]string{"limit": strconv.Itoa(limit), "iterator": "True", "reduce_stop_for_best": "True"}),
		})
		if err != nil {
			return err
		}
		size = proto.Size(reply)
		all, err = c.rows(reply.GetFieldsData(), nil)
		return err
	})
	return all, size, c.explainError(err)
}

// count returns how many rows there are.
func (c *Collection) count(ctx context.Context) (n int, err error) {
	err = c.call(ctx, "count the rows of "+c.name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{CollectionName: c.name, PartitionNames: c.arguments.Partitions, OutputFields: []string{"count(*)"}, UseDefaultConsistency: true})
		if err != nil {
			return err
		}
		for _, f := range reply.GetFieldsData() {
			if data := f.GetScalars().GetLongData().GetData(); len(data) == 1 {
				n = int(data[0])
			}
		}
		return nil
	})
	return n, c.explainError(err)
}

// rows makes rows of columns; their ids are in a column, too, if none are given.
func (c *Collection) rows(fields []*schemapb.FieldData, ids *schemapb.IDs) ([]*record, error) {
	key := c.key.GetName()
	if ids != nil {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
		fields = append(fields, idColumn(key, ids))
	}
	var keys *column
	for _, f := range fields {
		if f.GetFieldName() == key {
			keys = newColumn(f)
		}
	}
	if keys == nil {
		return nil, nil // no row matched
	}
	r, err := read(fields, keys.n)
	if err != nil {
		return nil, err
	}
	all := make([]*record, r.n)
	for i := range all {
		all[i] = &record{rows: r, i: i}
	}
	return all, nil
}

func idColumn(name string, ids *schemapb.IDs) *schemapb.FieldData {
	s := &schemapb.ScalarField{}
	switch ids := ids.GetIdField().(type) {
	case *schemapb.IDs_IntId:
		s.Data = &schemapb.ScalarField_LongData{LongData: ids.IntId}
	case *schemapb.IDs_StrId:
		s.Data = &schemapb.ScalarField_StringData{StringData: ids.StrId}
	}
	return &schemapb.FieldData{FieldName: name, Field: &schemapb.FieldData_Scalars{Scalars: s}}
}

// request is one search of the server.
type request struct {
	field   string
	metric  string
	queries *commonpb.PlaceholderValue
	expr    string
	fields  []string
	limit   int
}

// scored is a row that a search found.
type scored struct {
	*record
	key   string
	id    string
	score float32
}

// search returns what a server finds for each query, best first.
func (c *Collection) search(ctx context.Context, q request) ([][]scored, error) {
	group, err := proto.Marshal(&commonpb.PlaceholderGroup{Placeholders: []*commonpb.PlaceholderValue{q.queries}})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(c.searchParams(q.field, q.limit))
	if err != nil {
		return nil, err
	}
	n := len(q.queries.GetValues())
	lists := make([][]scored, n)
	err = c.call(ctx, "search "+c.name, func(ctx context.Context, s Service) error {
		reply, err := s.Search(ctx, &milvuspb.SearchRequest{
			CollectionName: c.name, PartitionNames: c.arguments.Partitions, Dsl: q.expr, DslType: commonpb.DslType_BoolExprV1, PlaceholderGroup: group, Nq: int64(n),
			OutputFields: q.fields, UseDefaultConsistency: true,
			SearchParams: pairs(map[string]string{"anns_field": q.field, "metric_type": q.metric, "topk": strconv.Itoa(q.limit), "params": string(params), "round_decimal": "-1"}),
		})
		if err != nil {
			return err
		}
		return c.split(reply.GetResults(), lists)
	})
	return lists, c.explainError(err)
}

// split makes a list of each query's rows.
func (c *Collection) split(results *schemapb.SearchResultData, lists [][]scored) error {
	clear(lists)
	all, err := c.rows(results.GetFieldsData(), results.GetIds())
	if err != nil {
		return err
	}
	scores, lengths := results.GetScores(), results.GetTopks()
	if len(scores) != len(all) || len(all) > 0 && len(lengths) != len(lists) {
		return fmt.Errorf("the server returned %d scores, %d rows and %d lists for %d queries", len(scores), len(all), len(lengths), len(lists))
	}
	at := 0
	for i := range min(len(lists), len(lengths)) {
		for range lengths[i] {
			if at == len(all) {
				return fmt.Errorf("the server returned %d rows, fewer than it counts", len(all))
			}
			lists[i] = append(lists[i], scored{all[at], c.keyOf(all[at]), c.idOf(all[at]), scores[at]})
			at++
		}
	}
	return nil
}

// searchParams are those from the file, and what an index needs to find so many rows.
func (c *Collection) searchParams(field string, limit int) map[string]any {
	params := map[string]any{}
	if field != c.vector.GetName() {
		return params
	}
	for name, text := range c.params {
		params[name] = text
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			params[name] = n
		}
	}
	enough := map[string]string{"HNSW": "ef", "DISKANN": "search_list"}
	for index, name := range enough {
		given, _ := params[name].(float64)
		if strings.HasPrefix(c.indexes[field]["index_type"], index) {
			params[name] = max(int(given), limit, 64)
		}
	}
	return params
}

func pairs(values map[string]string) []*commonpb.KeyValuePair {
	var all []*commonpb.KeyValuePair
	for _, key := range slices.SortedFunc(maps.Keys(values), cmp.Compare[string]) {
		all = append(all, &commonpb.KeyValuePair{Key: key, Value: values[key]})
	}
	return all
}
