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
	"github.com/x448/float16"
	"google.golang.org/protobuf/proto"
)

// This file makes searches and decodes replies, which have a column for each field, as
// rows; and vectors, of 32 or 16 bits, both ways. It knows of no collection what its fields
// mean: those of racflow and those that other programs make are read by it.

// column is one field of rows.
type column struct {
	at    func(i int) any // a string, an int64, a float64, a bool, []float32, or []byte of JSON
	n     int
	valid []bool // nil: no value is NULL
	index []int  // where the value of a row is, if the server left out NULLs
}

// ReplyRow is one row. It keeps what it has parsed.
type ReplyRow struct {
	columns map[string]*column // of all rows of the reply, by the names of the fields
	i       int
	parsed  map[string]any // JSON fields
}

// ReplyRows decodes the fields of a reply, and the ids if it is one to a search, as rows; those of a
// type that has no place in an entry are left out. key is the primary key.
func ReplyRows(fields []*schemapb.FieldData, ids *schemapb.IDs, key string) ([]*ReplyRow, error) {
	if ids != nil {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
		fields = append(fields, idColumn(key, ids))
	}
	at := slices.IndexFunc(fields, func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
	if at < 0 {
		return nil, nil // no row matched
	}
	n := newColumn(fields[at]).n
	columns := map[string]*column{}
	for _, f := range fields {
		c := newColumn(f)
		if c == nil {
			continue
		}
		if len(c.valid) == n && c.n < n {
			c.index = make([]int, n)
			for i, at := 0, 0; i < n; i++ {
				if c.index[i] = at; c.valid[i] {
					at++
				}
			}
		} else if c.n != n {
			return nil, fmt.Errorf("the server returned %d values of field %s for %d rows", c.n, f.GetFieldName(), n)
		}
		columns[f.GetFieldName()] = c
	}
	all := make([]*ReplyRow, n)
	for i := range all {
		all[i] = &ReplyRow{columns: columns, i: i}
	}
	return all, nil
}

func newColumn(f *schemapb.FieldData) *column {
	c := &column{valid: f.GetValidData()}
	s := f.GetScalars()
	switch data := s.GetData().(type) {
	case *schemapb.ScalarField_StringData:
		values := data.StringData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_LongData:
		values := data.LongData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_IntData:
		values := data.IntData.GetData()
		c.n, c.at = len(values), func(i int) any { return int64(values[i]) }
	case *schemapb.ScalarField_FloatData:
		values := data.FloatData.GetData()
		c.n, c.at = len(values), func(i int) any { return float64(values[i]) }
	case *schemapb.ScalarField_DoubleData:
		values := data.DoubleData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_BoolData:
		values := data.BoolData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	case *schemapb.ScalarField_JsonData:
		values := data.JsonData.GetData()
		c.n, c.at = len(values), func(i int) any { return values[i] }
	default:
		return vectorColumn(c, f.GetVectors())
	}
	return c
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

// Lists returns what a server found for each of n queries, best first.
func Lists(results *schemapb.SearchResultData, key string, n int) ([][]Scored, error) {
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

// SearchRequest is a search for the best rows of each of some queries.
type SearchRequest struct {
	Field   string // that is searched
	Metric  string
	Queries *commonpb.PlaceholderValue
	Params  map[string]any
	Expr    string // selects among the rows; empty: all
	Fields  []string
	Limit   int
}

// Message is the request as a server takes it, but for partitions and consistency.
func (r SearchRequest) Message(collection string) (*milvuspb.SearchRequest, error) {
	group, err := proto.Marshal(&commonpb.PlaceholderGroup{Placeholders: []*commonpb.PlaceholderValue{r.Queries}})
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(r.Params)
	return &milvuspb.SearchRequest{
		CollectionName: collection, Dsl: r.Expr, DslType: commonpb.DslType_BoolExprV1, PlaceholderGroup: group, Nq: int64(len(r.Queries.GetValues())), OutputFields: r.Fields,
		SearchParams: Pairs("anns_field", r.Field, "metric_type", r.Metric, "topk", strconv.Itoa(r.Limit), "params", string(params), "round_decimal", "-1"),
	}, err
}

// Pairs makes parameters of names and values in turn.
func Pairs(list ...string) (pairs []*commonpb.KeyValuePair) {
	for pair := range slices.Chunk(list, 2) {
		pairs = append(pairs, &commonpb.KeyValuePair{Key: pair[0], Value: pair[1]})
	}
	return pairs
}

// Value is what a row has in a field, JSON parsed; nil: nothing.
func (r *ReplyRow) Value(field string) any {
	c := r.columns[field]
	if c == nil || len(c.valid) > r.i && !c.valid[r.i] {
		return nil
	}
	at := r.i
	if c.index != nil {
		at = c.index[r.i]
	}
	text, isJSON := c.at(at).([]byte)
	if !isJSON {
		return c.at(at)
	}
	if v, ok := r.parsed[field]; ok {
		return v
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		v = nil // what its owner wrote is no JSON
	}
	if r.parsed == nil {
		r.parsed = map[string]any{}
	}
	r.parsed[field] = v
	return v
}

// vectorColumn reads vectors of floats; nil: it has others.
func vectorColumn(c *column, v *schemapb.VectorField) *column {
	dim := int(v.GetDim())
	if dim == 0 {
		return nil
	}
	halves := func(data []byte, decode func(uint16) float32) *column {
		c.n = len(data) / (2 * dim)
		c.at = func(i int) any {
			x := make([]float32, dim)
			for j := range x {
				x[j] = decode(binary.LittleEndian.Uint16(data[2*(i*dim+j):]))
			}
			return x
		}
		return c
	}
	switch data := v.GetData().(type) {
	case *schemapb.VectorField_FloatVector:
		values := data.FloatVector.GetData()
		c.n, c.at = len(values)/dim, func(i int) any { return values[i*dim : (i+1)*dim : (i+1)*dim] }
		return c
	case *schemapb.VectorField_Float16Vector:
		return halves(data.Float16Vector, fromFloat16)
	case *schemapb.VectorField_Bfloat16Vector:
		return halves(data.Bfloat16Vector, fromBFloat16)
	}
	return nil
}

func fromFloat16(h uint16) float32  { return float16.Frombits(h).Float32() }
func toFloat16(x float32) uint16    { return float16.Fromfloat32(x).Bits() }
func fromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Placeholders writes vectors as a search of a field of this type takes them.
func Placeholders(typ schemapb.DataType, vectors [][]float32) *commonpb.PlaceholderValue {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType(typ)}
	for _, x := range vectors {
		var b []byte
		for _, part := range x {
			switch typ {
			case schemapb.DataType_Float16Vector:
				b = binary.LittleEndian.AppendUint16(b, toFloat16(part))
			case schemapb.DataType_BFloat16Vector:
				b = binary.LittleEndian.AppendUint16(b, toBFloat16(part))
			default:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(part))
			}
		}
		v.Values = append(v.Values, b)
	}
	return v
}
