package table

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"
)

// This file makes searches and decodes replies into rows; a reply has a column for each field. It does not know what
// the fields mean: it reads collections of racflow and of other programs.

// ReplyRow is one row of a reply.
type ReplyRow struct {
	columns map[string][]any // by field name, for all rows of the reply
	i       int
}

// Value returns a row's value in a field: a string, an int64, a float64, a bool, []float32, or decoded JSON; nil:
// none.
func (r *ReplyRow) Value(field string) any {
	if column := r.columns[field]; column != nil {
		return column[r.i]
	}
	return nil
}

// ReplyRows decodes the fields of a reply as rows. ids are the ids in a reply to a search; key is the primary key.
// Fields of types that entries do not have are skipped.
func ReplyRows(fields []*schemapb.FieldData, ids *schemapb.IDs, key string) ([]*ReplyRow, error) {
	if ids != nil {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
		fields = append(fields, idColumn(key, ids))
	}
	at := slices.IndexFunc(fields, func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
	if at < 0 {
		return nil, nil // no row matched
	}
	n := len(valuesOf(fields[at]))
	columns := map[string][]any{}
	for _, f := range fields {
		column := valuesOf(f)
		if column == nil {
			continue
		}
		if valid := f.GetValidData(); len(valid) == n {
			column = withNulls(column, valid)
		}
		if len(column) != n {
			return nil, fmt.Errorf("the server returned %d values of field %s for %d rows", len(column), f.GetFieldName(), n)
		}
		columns[f.GetFieldName()] = column
	}
	all := make([]*ReplyRow, n)
	for i := range all {
		all[i] = &ReplyRow{columns, i}
	}
	return all, nil
}

// withNulls puts nil in place of invalid values. Some servers leave invalid values out of the column.
func withNulls(column []any, valid []bool) []any {
	all, next := make([]any, len(valid)), 0
	leftOut := len(column) < len(valid)
	for i, ok := range valid {
		if ok && next < len(column) {
			all[i] = column[next]
		}
		if ok || !leftOut {
			next++
		}
	}
	return all
}

// valuesOf returns the values of a field, for ReplyRow.Value; nil: it has another type.
func valuesOf(f *schemapb.FieldData) []any {
	switch data := f.GetScalars().GetData().(type) {
	case *schemapb.ScalarField_StringData:
		return each(data.StringData.GetData(), func(v string) any { return v })
	case *schemapb.ScalarField_LongData:
		return each(data.LongData.GetData(), func(v int64) any { return v })
	case *schemapb.ScalarField_IntData:
		return each(data.IntData.GetData(), func(v int32) any { return int64(v) })
	case *schemapb.ScalarField_FloatData:
		return each(data.FloatData.GetData(), func(v float32) any { return float64(v) })
	case *schemapb.ScalarField_DoubleData:
		return each(data.DoubleData.GetData(), func(v float64) any { return v })
	case *schemapb.ScalarField_BoolData:
		return each(data.BoolData.GetData(), func(v bool) any { return v })
	case *schemapb.ScalarField_JsonData:
		return each(data.JsonData.GetData(), func(text []byte) (v any) {
			if json.Unmarshal(text, &v) != nil {
				return nil // the owner wrote invalid JSON
			}
			return v
		})
	}
	dim, numbers := int(f.GetVectors().GetDim()), f.GetVectors().GetFloatVector().GetData()
	if dim == 0 || numbers == nil {
		return nil
	}
	return each(slices.Collect(slices.Chunk(numbers, dim)), func(x []float32) any { return x })
}

func each[From, To any](from []From, convert func(From) To) []To {
	to := make([]To, len(from))
	for i, v := range from {
		to[i] = convert(v)
	}
	return to
}

func idColumn(name string, ids *schemapb.IDs) *schemapb.FieldData {
	s := &schemapb.ScalarField{}
	switch ids := ids.GetIdField().(type) {
	case *schemapb.IDs_IntId:
		s.Data = &schemapb.ScalarField_LongData{LongData: ids.IntId}
	case *schemapb.IDs_StrId:
		s.Data = &schemapb.ScalarField_StringData{StringData: ids.StrId}
	default: // no row matched
		s.Data = &schemapb.ScalarField_StringData{}
	}
	return &schemapb.FieldData{FieldName: name, Field: &schemapb.FieldData_Scalars{Scalars: s}}
}

// Scored is a row that a search found.
type Scored struct {
	*ReplyRow
	Score float32
}

// searched returns the rows that a server found for each of n queries, best first.
func searched(results *schemapb.SearchResultData, key string, n int) ([][]Scored, error) {
	all, err := ReplyRows(results.GetFieldsData(), results.GetIds(), key)
	if err != nil || len(all) == 0 {
		return make([][]Scored, n), err
	}
	scores, lengths := results.GetScores(), results.GetTopks()
	if len(scores) != len(all) || len(lengths) != n {
		return nil, fmt.Errorf("the server returned %d scores, %d rows and %d lists for %d queries", len(scores), len(all), len(lengths), n)
	}
	lists := make([][]Scored, n)
	for i, length := range lengths {
		if int(length) > len(all) {
			return nil, fmt.Errorf("the server returned %d rows, fewer than it counts", len(all))
		}
		for j, r := range all[:length] {
			lists[i] = append(lists[i], Scored{r, scores[j]})
		}
		all, scores = all[length:], scores[length:]
	}
	return lists, nil
}

// SearchRequest is a search for the best rows of each query.
type SearchRequest struct {
	Field   string // the searched field
	Metric  string
	Queries *commonpb.PlaceholderValue
	Params  map[string]any
	Expr    string // selects rows; empty: all
	Fields  []string
	Limit   int
}

// message returns the request in the server's form, without the collection and the consistency.
func (r SearchRequest) message() (*milvuspb.SearchRequest, error) {
	group, err := proto.Marshal(&commonpb.PlaceholderGroup{Placeholders: []*commonpb.PlaceholderValue{r.Queries}})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(r.Params)
	return &milvuspb.SearchRequest{
		Dsl: r.Expr, DslType: commonpb.DslType_BoolExprV1, PlaceholderGroup: group, Nq: int64(len(r.Queries.GetValues())), OutputFields: r.Fields,
		SearchParams: Pairs("anns_field", r.Field, "metric_type", r.Metric, "topk", strconv.Itoa(r.Limit), "params", string(params), "round_decimal", "-1"),
	}, err
}

// Pairs makes parameters from alternating names and values.
func Pairs(list ...string) (pairs []*commonpb.KeyValuePair) {
	for pair := range slices.Chunk(list, 2) {
		pairs = append(pairs, &commonpb.KeyValuePair{Key: pair[0], Value: pair[1]})
	}
	return pairs
}

// Param returns a value from a server's list; empty: it is not in the list.
func Param(pairs []*commonpb.KeyValuePair, key string) string {
	for _, p := range pairs {
		if p.GetKey() == key {
			return p.GetValue()
		}
	}
	return ""
}

// Placeholders converts vectors to the form of a search.
func Placeholders(vectors [][]float32) *commonpb.PlaceholderValue {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_FloatVector}
	for _, x := range vectors {
		var b []byte
		for _, part := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(part))
		}
		v.Values = append(v.Values, b)
	}
	return v
}
