package milvus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// owner makes collections as their owners do, by the raw service.
type owner struct {
	t testing.TB
	milvuspb.MilvusServiceClient
}

func newOwner(t testing.TB, c config) *owner {
	t.Helper()
	s, err := table.NewServer(c.ServerConfig)
	must.Do(t, err)
	t.Cleanup(func() { s.Close() })
	client, err := s.Client(t.Context())
	must.Do(t, err)
	return &owner{t: t, MilvusServiceClient: client.Service}
}

// keyValues makes pairs from a list.
func keyValues(list ...string) (pairs []*commonpb.KeyValuePair) {
	for pair := range slices.Chunk(list, 2) {
		pairs = append(pairs, &commonpb.KeyValuePair{Key: pair[0], Value: pair[1]})
	}
	return pairs
}

func field(name string, typ schemapb.DataType, params ...string) *schemapb.FieldSchema {
	if typ == schemapb.DataType_VarChar && len(params) == 0 {
		params = []string{"max_length", "60000"}
	}
	return &schemapb.FieldSchema{Name: name, DataType: typ, TypeParams: keyValues(params...)}
}

func primary(f *schemapb.FieldSchema) *schemapb.FieldSchema {
	f.IsPrimaryKey = true
	return f
}

// made describes a collection to make.
type made struct {
	fields    []*schemapb.FieldSchema
	functions []*schemapb.FunctionSchema
	dynamic   bool
	metrics   map[string]string // by field
}

func (o *owner) create(name string, m made) {
	o.t.Helper()
	schema, err := proto.Marshal(&schemapb.CollectionSchema{Name: name, Fields: m.fields, Functions: m.functions, EnableDynamicField: m.dynamic})
	must.Do(o.t, err)
	_, err = o.CreateCollection(o.t.Context(), &milvuspb.CreateCollectionRequest{CollectionName: name, Schema: schema, ShardsNum: 1, ConsistencyLevel: commonpb.ConsistencyLevel_Strong})
	must.Do(o.t, err)
	for field, metric := range m.metrics {
		index := "FLAT"
		if metric == "BM25" || metric == "SPARSE" {
			index = "SPARSE_INVERTED_INDEX"
		}
		_, err = o.CreateIndex(o.t.Context(), &milvuspb.CreateIndexRequest{
			CollectionName: name, FieldName: field, IndexName: field, ExtraParams: keyValues("index_type", index, "metric_type", strings.Replace(metric, "SPARSE", "IP", 1), "params", "{}"),
		})
		must.Do(o.t, err)
	}
	if len(m.metrics) > 0 {
		o.load(name)
	}
}

func (o *owner) load(name string) {
	o.t.Helper()
	_, err := o.LoadCollection(o.t.Context(), &milvuspb.LoadCollectionRequest{CollectionName: name})
	must.Do(o.t, err)
	for {
		reply, err := o.GetLoadState(o.t.Context(), &milvuspb.GetLoadStateRequest{CollectionName: name})
		must.Do(o.t, err)
		if reply.GetState() == commonpb.LoadState_LoadStateLoaded {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (o *owner) insert(name, partition string, n int, columns ...*schemapb.FieldData) {
	o.t.Helper()
	_, err := o.Insert(o.t.Context(), &milvuspb.InsertRequest{CollectionName: name, PartitionName: partition, NumRows: uint32(n), FieldsData: columns})
	must.Do(o.t, err)
}

// rowsAndSchema returns the parts of a collection that must not change.
func (o *owner) rowsAndSchema(name string) string {
	o.t.Helper()
	d, err := o.DescribeCollection(o.t.Context(), &milvuspb.DescribeCollectionRequest{CollectionName: name})
	must.Do(o.t, err)
	i, err := o.DescribeIndex(o.t.Context(), &milvuspb.DescribeIndexRequest{CollectionName: name})
	must.Do(o.t, err)
	q, err := o.Query(o.t.Context(), &milvuspb.QueryRequest{CollectionName: name, OutputFields: []string{"count(*)"}})
	must.Do(o.t, err)
	s, err := o.ShowCollections(o.t.Context(), &milvuspb.ShowCollectionsRequest{})
	must.Do(o.t, err)
	var indexes []string // without their progress, which changes by itself
	for _, index := range i.IndexDescriptions {
		indexes = append(indexes, fmt.Sprint(index.FieldName, index.IndexName, index.Params))
	}
	slices.Sort(indexes)
	slices.Sort(s.CollectionNames)
	return fmt.Sprint(d.Schema, indexes, q.FieldsData, s.CollectionNames)
}

func column(name string, typ schemapb.DataType, data *schemapb.ScalarField) *schemapb.FieldData {
	return &schemapb.FieldData{FieldName: name, Type: typ, IsDynamic: name == "", Field: &schemapb.FieldData_Scalars{Scalars: data}}
}

func strs(name string, values []string) *schemapb.FieldData {
	return column(name, schemapb.DataType_VarChar, &schemapb.ScalarField{Data: &schemapb.ScalarField_StringData{StringData: &schemapb.StringArray{Data: values}}})
}

func int64s(name string, values []int64) *schemapb.FieldData {
	return column(name, schemapb.DataType_Int64, &schemapb.ScalarField{Data: &schemapb.ScalarField_LongData{LongData: &schemapb.LongArray{Data: values}}})
}

func int32s(name string, values []int32) *schemapb.FieldData {
	return column(name, schemapb.DataType_Int32, &schemapb.ScalarField{Data: &schemapb.ScalarField_IntData{IntData: &schemapb.IntArray{Data: values}}})
}

func float32s(name string, values []float32) *schemapb.FieldData {
	return column(name, schemapb.DataType_Float, &schemapb.ScalarField{Data: &schemapb.ScalarField_FloatData{FloatData: &schemapb.FloatArray{Data: values}}})
}

func bools(name string, values []bool) *schemapb.FieldData {
	return column(name, schemapb.DataType_Bool, &schemapb.ScalarField{Data: &schemapb.ScalarField_BoolData{BoolData: &schemapb.BoolArray{Data: values}}})
}

// objects returns a JSON field; without a name it is the dynamic field.
func objects(t testing.TB, name string, values []map[string]any) *schemapb.FieldData {
	t.Helper()
	var data [][]byte
	for _, v := range values {
		text, err := json.Marshal(v)
		must.Do(t, err)
		data = append(data, text)
	}
	return column(name, schemapb.DataType_JSON, &schemapb.ScalarField{Data: &schemapb.ScalarField_JsonData{JsonData: &schemapb.JSONArray{Data: data}}})
}

func milvusVectors(name string, values [][]float32) *schemapb.FieldData {
	return &schemapb.FieldData{FieldName: name, Type: schemapb.DataType_FloatVector, Field: &schemapb.FieldData_Vectors{Vectors: &schemapb.VectorField{
		Dim: int64(len(values[0])), Data: &schemapb.VectorField_FloatVector{FloatVector: &schemapb.FloatArray{Data: slices.Concat(values...)}},
	}}}
}

// attach opens a collection of another program.
func attach(t testing.TB, c config, a entries.Arguments) (*reader, sdk.Attached) {
	t.Helper()
	r := openReader(t, c, a)
	found, err := r.Attach(t.Context())
	must.Do(t, err)
	return r, found
}

func openReader(t testing.TB, c config, a entries.Arguments) *reader {
	t.Helper()
	c.Arguments = a
	s, err := open(context.Background(), sdk.Setup{}, c)
	must.Do(t, err)
	t.Cleanup(func() { s.(*reader).Close() })
	return s.(*reader)
}
