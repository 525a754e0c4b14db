package table

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
)

// maxDimension is the most that Milvus takes.
const maxDimension = 32768

func (t *Table) schema() *entity.Schema {
	field := func(name string, typ entity.FieldType) *entity.Field {
		return entity.NewField().WithName(name).WithDataType(typ)
	}
	varchar := func(name string, length int64) *entity.Field {
		return field(name, entity.FieldTypeVarChar).WithMaxLength(length)
	}
	schema := entity.NewSchema().WithName(t.Name).WithDescription(t.identity().String()).
		WithField(varchar(row.FieldKey, 64).WithIsPrimaryKey(true)).
		WithField(varchar(row.FieldID, row.MaxBytes)).
		WithField(field(row.FieldSequence, entity.FieldTypeInt64)).
		WithField(field(row.FieldIDHash, entity.FieldTypeInt64)).
		WithField(varchar(row.FieldLabel, row.MaxBytes)).
		WithField(varchar(row.FieldContext, row.MaxBytes)).
		WithField(varchar(row.FieldText, row.MaxBytes)).
		WithField(field(row.FieldMeta, entity.FieldTypeJSON)).
		WithField(varchar(row.FieldDetails, row.MaxBytes)).
		WithField(field(row.FieldVector, entity.FieldTypeFloatVector).WithDim(int64(row.Width(t.Schema.Dimension))))
	if t.Analyzer != nil {
		schema.WithField(field(row.FieldWords, entity.FieldTypeSparseVector))
	}
	return schema
}

// Exists reports whether the table is on the server, and refuses one that is not
// this. It changes nothing there.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	have, err := describe(ctx, t.Server, t.Name)
	if err != nil || have == nil {
		return false, err
	}
	return true, t.recognize(have)
}

// describe returns what is on the server under a name, or nil.
func describe(ctx context.Context, s *server.Server, name string) (have *entity.Collection, err error) {
	err = s.Call(ctx, "look for collection "+name, func(ctx context.Context, c *client.GrpcClient, _ int) (err error) {
		have, err = c.DescribeCollection(ctx, name)
		return err
	})
	if server.IsMissing(err) {
		return nil, nil
	}
	return have, err
}

// recognize refuses what is not this table.
func (t *Table) recognize(have *entity.Collection) error {
	id, want := identityOf(have), t.identity()
	refuse := func(format string, args ...any) error { return sdk.Invalid(fmt.Errorf(format, args...)) }
	switch {
	case id.Version == 0 || id.Collection != t.Collection:
		return refuse("collection %s on the server was not made by racflow and is left as it is: use another prefix or database", t.Name)
	case id.Version > Version:
		return refuse("collection %s was made by a newer racflow (schema %d, this one knows %d): use that, or build it anew under another prefix", t.Name, id.Version, Version)
	case id.Version < Version:
		return refuse("collection %s was made by an older racflow (schema %d, this one writes %d): build it anew under another prefix", t.Name, id.Version, Version)
	case id.Dimension != want.Dimension:
		return refuse("collection %q has vectors of %d dimensions and the embedder gives %d: build it anew, under another name or prefix", t.Collection, id.Dimension, want.Dimension)
	case id.Analyzer != want.Analyzer:
		return refuse("collection %q was built with analyzer %q, not %q: build it anew, under another name or prefix", t.Collection, id.Analyzer, want.Analyzer)
	case id.Analyzer != "" && (id.K1 != want.K1 || id.B != want.B):
		return refuse("collection %q was built with k1 = %v and b = %v: use these, or build it anew under another prefix", t.Collection, id.K1, id.B)
	}
	// What has to be the same in a field.
	kind := func(f *entity.Field) string {
		return fmt.Sprint(f.DataType, f.PrimaryKey, f.TypeParams[entity.TypeParamDim])
	}
	missing := map[string]string{}
	for _, f := range t.schema().Fields {
		missing[f.Name] = kind(f)
	}
	for _, f := range have.Schema.Fields {
		if missing[f.Name] != kind(f) {
			return refuse("collection %s on the server has a field %q of another type than racflow's and is left as it is: use another prefix or database", t.Name, f.Name)
		}
		delete(missing, f.Name)
	}
	if len(missing) > 0 {
		return refuse("collection %s on the server lacks the fields %s of racflow's and is left as it is: use another prefix or database",
			t.Name, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}

// Create makes the table on the server, without indexes.
func (t *Table) Create(ctx context.Context) error {
	if t.Schema.Dimension > maxDimension {
		return sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most that Milvus takes is %d", t.Schema.Dimension, maxDimension))
	}
	if len(t.Name) > 255 {
		return sdk.Invalid(fmt.Errorf("the collection's name on the server, %s, is longer than the 255 characters that Milvus takes: use a shorter name", t.Name))
	}
	err := t.Server.Call(ctx, "create collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.CreateCollection(ctx, t.schema(), int32(t.Options.Shards),
			client.WithConsistencyLevel(entity.ClSession), client.WithCollectionProperty(propertyIdentity, t.identity().String()))
	})
	if exists, lookErr := t.Exists(ctx); lookErr != nil {
		return lookErr
	} else if !exists {
		return fmt.Errorf("collection %s could not be made: %w", t.Name, err)
	}
	return nil // by whoever was faster
}

// Drop removes the table from the server.
func (t *Table) Drop(ctx context.Context) error {
	return t.Server.Call(ctx, "drop collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.DropCollection(ctx, t.Name)
	})
}
