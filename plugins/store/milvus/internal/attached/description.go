package attached

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
)

// dynamicField is the name of the field that holds what no field was declared for.
const dynamicField = "$meta"

// description is what a server says of a collection.
type description struct {
	name      string // its own, where it was asked for by an alias
	identity  string // of this collection, as well as the server can tell
	anonymous bool   // the server gives collections no ids
	isAlias   bool   // the name is an alias: the server does not say which collection it leads to
	fields    []*schemapb.FieldSchema
	functions []*schemapb.FunctionSchema
	indexes   map[string]map[string]string // of each field: parameters, index_type and metric_type among them
}

// describe asks the server. It refuses a name that the server does not know.
func describe(ctx context.Context, call Caller, a Arguments) (*description, error) {
	var reply *milvuspb.DescribeCollectionResponse
	err := call(ctx, "describe collection "+a.Collection, func(ctx context.Context, s Service) (err error) {
		reply, err = s.DescribeCollection(ctx, &milvuspb.DescribeCollectionRequest{CollectionName: a.Collection})
		return err
	})
	if server.IsMissing(err) {
		return nil, noCollection(ctx, call, a.Collection)
	}
	if err != nil {
		return nil, err
	}
	schema := reply.GetSchema()
	// Milvus Lite 2, which has no aliases, gives no name here, and Milvus 2.3 the alias.
	d := &description{name: cmp.Or(reply.GetCollectionName(), a.Collection), fields: schema.GetFields(), functions: schema.GetFunctions()}
	if slices.Contains(reply.GetAliases(), d.name) && schema.GetName() != "" {
		d.name = schema.GetName()
	}
	d.isAlias = slices.Contains(reply.GetAliases(), d.name)
	isDynamic := func(f *schemapb.FieldSchema) bool { return f.GetIsDynamic() }
	if schema.GetEnableDynamicField() && !slices.ContainsFunc(d.fields, isDynamic) {
		d.fields = append(d.fields, &schemapb.FieldSchema{Name: dynamicField, DataType: schemapb.DataType_JSON, IsDynamic: true})
	}
	d.identify(reply)
	return d, d.readIndexes(ctx, call)
}

// identify makes the id. Milvus Lite has none, so the schema is in it.
func (d *description) identify(reply *milvuspb.DescribeCollectionResponse) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d", reply.GetDbName(), d.name, reply.GetCollectionID(), reply.GetCreatedTimestamp())
	for _, f := range d.fields {
		fmt.Fprintf(h, " %q %v %v %q", f.GetName(), f.GetDataType(), f.GetIsPrimaryKey(), pair(f.GetTypeParams(), "dim"))
	}
	d.identity = hex.EncodeToString(h.Sum(nil)[:12])
	d.anonymous = reply.GetCollectionID() == 0 && reply.GetCreatedTimestamp() == 0
}

func (d *description) readIndexes(ctx context.Context, call Caller) error {
	d.indexes = map[string]map[string]string{}
	err := call(ctx, "describe the indexes of "+d.name, func(ctx context.Context, s Service) error {
		reply, err := s.DescribeIndex(ctx, &milvuspb.DescribeIndexRequest{CollectionName: d.name})
		for _, i := range reply.GetIndexDescriptions() {
			params := map[string]string{}
			for _, p := range i.GetParams() {
				params[p.GetKey()] = p.GetValue()
			}
			_ = json.Unmarshal([]byte(params["params"]), &params) // where a server packs them
			d.indexes[i.GetFieldName()] = params
		}
		return err
	})
	if server.IsNoIndex(err) {
		return nil // findVector says which field needs one
	}
	return err
}

func (d *description) field(name string) *schemapb.FieldSchema {
	for _, f := range d.fields {
		if f.GetName() == name {
			return f
		}
	}
	return nil
}

func (d *description) primary() *schemapb.FieldSchema {
	for _, f := range d.fields {
		if f.GetIsPrimaryKey() {
			return f
		}
	}
	return nil
}

// wordsInput is the field that a BM25 function reads to fill another one; nil: not
// known.
func (d *description) wordsInput(filled string) *schemapb.FieldSchema {
	for _, f := range d.functions {
		if slices.Contains(f.GetOutputFieldNames(), filled) && len(f.GetInputFieldNames()) == 1 {
			return d.field(f.GetInputFieldNames()[0])
		}
	}
	return nil
}

func (d *description) names() string {
	var names []string
	for _, f := range d.fields {
		names = append(names, f.GetName())
	}
	return list(names)
}

func pair(pairs []*commonpb.KeyValuePair, key string) string {
	for _, p := range pairs {
		if p.GetKey() == key {
			return p.GetValue()
		}
	}
	return ""
}
