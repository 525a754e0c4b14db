package attached

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
)

// describe asks the server. It refuses a name that the server does not know.
func describe(ctx context.Context, call Caller, a Arguments) (*mapping.Schema, error) {
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
	d := &mapping.Schema{Name: cmp.Or(reply.GetCollectionName(), a.Collection), Fields: schema.GetFields(), Functions: schema.GetFunctions()}
	if slices.Contains(reply.GetAliases(), d.Name) && schema.GetName() != "" {
		d.Name = schema.GetName()
	}
	d.IsAlias = slices.Contains(reply.GetAliases(), d.Name)
	isDynamic := func(f *schemapb.FieldSchema) bool { return f.GetIsDynamic() }
	if schema.GetEnableDynamicField() && !slices.ContainsFunc(d.Fields, isDynamic) {
		d.Fields = append(d.Fields, &schemapb.FieldSchema{Name: mapping.DynamicField, DataType: schemapb.DataType_JSON, IsDynamic: true})
	}
	identify(d, reply)
	return d, readIndexes(ctx, call, d)
}

// identify makes the id. Milvus Lite has none, so the schema is in it.
func identify(d *mapping.Schema, reply *milvuspb.DescribeCollectionResponse) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d", reply.GetDbName(), d.Name, reply.GetCollectionID(), reply.GetCreatedTimestamp())
	for _, f := range d.Fields {
		fmt.Fprintf(h, " %q %v %v %q", f.GetName(), f.GetDataType(), f.GetIsPrimaryKey(), mapping.Param(f.GetTypeParams(), "dim"))
	}
	d.Identity = hex.EncodeToString(h.Sum(nil)[:12])
	d.Anonymous = reply.GetCollectionID() == 0 && reply.GetCreatedTimestamp() == 0
}

func readIndexes(ctx context.Context, call Caller, d *mapping.Schema) error {
	d.Indexes = map[string]map[string]string{}
	err := call(ctx, "describe the indexes of "+d.Name, func(ctx context.Context, s Service) error {
		reply, err := s.DescribeIndex(ctx, &milvuspb.DescribeIndexRequest{CollectionName: d.Name})
		for _, i := range reply.GetIndexDescriptions() {
			params := map[string]string{}
			for _, p := range i.GetParams() {
				params[p.GetKey()] = p.GetValue()
			}
			_ = json.Unmarshal([]byte(params["params"]), &params) // where a server packs them
			d.Indexes[i.GetFieldName()] = params
		}
		return err
	})
	if server.IsNoIndex(err) {
		return nil // findVector says which field needs one
	}
	return err
}
