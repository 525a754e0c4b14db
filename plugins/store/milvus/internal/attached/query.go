package attached

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
)

// maxRows is the most that a server returns at a time.
const maxRows = 16384

// query returns rows that an expression selects, in the order of their keys: the
// first limit of them. It also returns about how many bytes they took.
func (c *Collection) query(ctx context.Context, expr string, fields []string, limit int) ([]*column.Row, int, error) {
	var all []*column.Row
	size := 0
	err := c.call(ctx, "read rows of "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{
			CollectionName: c.Name, PartitionNames: c.arguments.Partitions, Expr: expr, OutputFields: fields, UseDefaultConsistency: true,
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
	err = c.call(ctx, "count the rows of "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{CollectionName: c.Name, PartitionNames: c.arguments.Partitions, OutputFields: []string{"count(*)"}, UseDefaultConsistency: true})
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
func (c *Collection) rows(fields []*schemapb.FieldData, ids *schemapb.IDs) ([]*column.Row, error) {
	key := c.Key.GetName()
	if ids != nil {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
		fields = append(fields, idColumn(key, ids))
	}
	for _, f := range fields {
		if f.GetFieldName() == key {
			return column.Read(fields, column.Length(f))
		}
	}
	return nil, nil // no row matched
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

func pairs(values map[string]string) []*commonpb.KeyValuePair {
	var all []*commonpb.KeyValuePair
	for _, key := range slices.SortedFunc(maps.Keys(values), cmp.Compare[string]) {
		all = append(all, &commonpb.KeyValuePair{Key: key, Value: values[key]})
	}
	return all
}
