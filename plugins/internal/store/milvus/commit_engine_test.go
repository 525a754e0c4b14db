package milvus

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// commitEngine is a Milvus server in memory with one collection: the rows, and how each
// call changes them. Every call has its effect at one moment.
type commitEngine struct {
	schema  *schemapb.CollectionSchema
	indexed map[string]bool
	rows    map[string]map[string]any // key to fields
	behind  map[string]map[string]any // what reads see that need not see the newest rows; nil: the same
	late    map[string]int            // rows that so many reads do not see yet
}

var ok = &commonpb.Status{}

// serve has a call's effect and returns the reply.
func (e *commitEngine) serve(args any) (any, error) {
	switch r := args.(type) {
	case *milvuspb.CreateCollectionRequest:
		e.schema, e.indexed, e.rows, e.late = &schemapb.CollectionSchema{}, map[string]bool{}, map[string]map[string]any{}, map[string]int{}
		return ok, proto.Unmarshal(r.Schema, protoadapt.MessageV2Of(e.schema))
	case *milvuspb.HasCollectionRequest:
		return &milvuspb.BoolResponse{Status: ok, Value: e.schema != nil}, nil
	case *milvuspb.DescribeCollectionRequest:
		return &milvuspb.DescribeCollectionResponse{Status: ok, Schema: e.schema}, nil
	case *milvuspb.CreateIndexRequest:
		e.indexed[r.FieldName] = true
		return ok, nil
	case *milvuspb.DescribeIndexRequest:
		reply := &milvuspb.DescribeIndexResponse{Status: ok}
		if e.indexed[r.FieldName] {
			reply.IndexDescriptions = []*milvuspb.IndexDescription{{FieldName: r.FieldName, Params: []*commonpb.KeyValuePair{{Key: "index_type", Value: "FLAT"}}}}
		}
		return reply, nil
	case *milvuspb.GetLoadStateRequest:
		return &milvuspb.GetLoadStateResponse{Status: ok, State: commonpb.LoadState_LoadStateLoaded}, nil
	case *milvuspb.InsertRequest:
		return e.write(r.FieldsData, int(r.NumRows)), nil
	case *milvuspb.UpsertRequest:
		return e.write(r.FieldsData, int(r.NumRows)), nil
	case *milvuspb.DeleteRequest:
		for _, row := range e.selected(r.Expr) {
			delete(e.rows, row["key"].(string))
		}
		return &milvuspb.MutationResult{Status: ok}, nil
	case *milvuspb.QueryRequest:
		return e.query(r), nil
	}
	return nil, status.Errorf(codes.Unimplemented, "%T", args)
}

func (e *commitEngine) write(fields []*schemapb.FieldData, n int) *milvuspb.MutationResult {
	keys := &schemapb.StringArray{}
	for i := range n {
		row := map[string]any{}
		for _, f := range fields {
			switch data := f.GetScalars(); {
			case data.GetStringData() != nil:
				row[f.FieldName] = data.GetStringData().Data[i]
			case data.GetLongData() != nil:
				row[f.FieldName] = data.GetLongData().Data[i]
			case data.GetJsonData() != nil:
				row[f.FieldName] = data.GetJsonData().Data[i]
			case f.GetVectors().GetFloatVector() != nil:
				dim := int(f.GetVectors().Dim)
				row[f.FieldName] = f.GetVectors().GetFloatVector().Data[i*dim : (i+1)*dim]
			}
		}
		key := row["key"].(string)
		e.rows[key], keys.Data = row, append(keys.Data, key)
	}
	return &milvuspb.MutationResult{Status: ok, IDs: &schemapb.IDs{IdField: &schemapb.IDs_StrId{StrId: keys}}}
}

func (e *commitEngine) query(r *milvuspb.QueryRequest) *milvuspb.QueryResults {
	newest := e.rows
	if e.behind != nil && r.GuaranteeTimestamp != client.StrongTimestamp {
		e.rows = e.behind
	}
	rows := slices.DeleteFunc(e.selected(r.Expr), func(row map[string]any) bool {
		key := row["key"].(string)
		e.late[key]--
		return e.late[key] >= 0
	})
	e.rows = newest
	for _, p := range r.QueryParams {
		if limit, err := strconv.Atoi(p.Value); p.Key == "limit" && err == nil {
			rows = rows[:min(limit, len(rows))]
		}
	}
	reply := &milvuspb.QueryResults{Status: ok, CollectionName: r.CollectionName, OutputFields: r.OutputFields}
	for _, name := range r.OutputFields {
		f := &schemapb.FieldData{FieldName: name}
		if name == "count(*)" {
			rows = []map[string]any{{name: int64(len(rows))}}
		}
		scalars, dim := &schemapb.ScalarField{}, 0
		var texts []string
		var numbers []int64
		var documents [][]byte
		var floats []float32
		for _, row := range rows {
			switch v := row[name].(type) {
			case string:
				texts = append(texts, v)
			case int64:
				numbers = append(numbers, v)
			case []byte:
				documents = append(documents, v)
			case []float32:
				floats, dim = append(floats, v...), len(v)
			}
		}
		f.Field = &schemapb.FieldData_Scalars{Scalars: scalars}
		switch {
		case dim > 0:
			f.Type = schemapb.DataType_FloatVector
			f.Field = &schemapb.FieldData_Vectors{Vectors: &schemapb.VectorField{Dim: int64(dim), Data: &schemapb.VectorField_FloatVector{FloatVector: &schemapb.FloatArray{Data: floats}}}}
		case numbers != nil:
			f.Type, scalars.Data = schemapb.DataType_Int64, &schemapb.ScalarField_LongData{LongData: &schemapb.LongArray{Data: numbers}}
		case documents != nil:
			f.Type, scalars.Data = schemapb.DataType_JSON, &schemapb.ScalarField_JsonData{JsonData: &schemapb.JSONArray{Data: documents}}
		default:
			f.Type, scalars.Data = schemapb.DataType_VarChar, &schemapb.ScalarField_StringData{StringData: &schemapb.StringArray{Data: texts}}
		}
		reply.FieldsData = append(reply.FieldsData, f)
	}
	return reply
}

// selected returns the rows that an expression selects, in the order of their keys.
func (e *commitEngine) selected(expr string) []map[string]any {
	var keys []string
	all := tokens.FindAllString(expr, -1)
	for key, row := range e.rows {
		p := parser{all, row}
		if matches := p.or(); len(p.rest) > 0 {
			panic("an expression that the simulation does not know: " + expr)
		} else if matches {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	rows := make([]map[string]any, len(keys))
	for i, key := range keys {
		rows[i] = e.rows[key]
	}
	return rows
}

var tokens = regexp.MustCompile(`"[^"]*"|-?\w+|[<>=!]=?|[][(),]`)

// parser evaluates an expression for a row while it reads it.
type parser struct {
	rest []string
	row  map[string]any
}

func (p *parser) next() string {
	token := p.rest[0]
	p.rest = p.rest[1:]
	return token
}

func (p *parser) accept(token string) bool {
	found := len(p.rest) > 0 && p.rest[0] == token
	if found {
		p.next()
	}
	return found
}

func (p *parser) or() bool {
	matches := p.and()
	for p.accept("or") {
		matches = p.and() || matches
	}
	return matches
}

func (p *parser) and() bool {
	matches := p.condition()
	for p.accept("and") {
		matches = p.condition() && matches
	}
	return matches
}

func (p *parser) condition() bool {
	if p.accept("(") {
		matches := p.or()
		p.next() // )
		return matches
	}
	field, operator := p.next(), p.next()
	if operator == "in" {
		matches := false
		for p.next(); !p.accept("]"); p.accept(",") {
			matches = p.compare(field) == 0 || matches
		}
		return matches
	}
	order := p.compare(field)
	return strings.Contains(operator, "=") && order == 0 || operator[0] == '<' && order < 0 || operator[0] == '>' && order > 0
}

// compare compares a field with the next literal.
func (p *parser) compare(field string) int {
	literal := p.next()
	switch v := p.row[field].(type) {
	case string:
		return strings.Compare(v, strings.Trim(literal, `"`))
	case int64:
		n, err := strconv.ParseInt(literal, 10, 64)
		if err != nil {
			panic(err)
		}
		return int(max(-1, min(1, v-n)))
	}
	panic(fmt.Sprintf("no field %q", field))
}
