package milvus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// schemaVersion is part of every collection: raise it when rows or records
// are written in another way.
const schemaVersion = 2

// The fields of a row.
const (
	fieldKey      = "key"      // place and sequence number, as keyOf writes them; of a row that is no entry, another text
	fieldSequence = "sequence" // number of the row; rows that are no entries come last
	fieldSlot     = "slot"     // hash of the id, for finding a row by it
	fieldID       = "id"       // of the entry
	fieldLabel    = "label"
	fieldContext  = "context"
	fieldText     = "text" // of a row that is no entry: what it says
	fieldMeta     = "meta"
	fieldDetails  = "details" // what no server has to understand, in one string
	fieldVector   = "vector"  // of norm 1, or 0
	fieldWords    = "words"
)

// maxBytes is the most that Milvus takes in a string or in JSON.
const maxBytes = 65535

// maxDimension is the most that Milvus takes.
const maxDimension = 32768

// identity says what a collection on the server is: in its description and in
// a property, of which some servers keep only the one and some only the other.
type identity struct {
	Version    int     `json:"racflow"` // schemaVersion
	Collection string  `json:"collection"`
	Dimension  int     `json:"dimension"`
	Analyzer   string  `json:"analyzer"`
	K1         float64 `json:"k1"`
	B          float64 `json:"b"`
}

const propertyIdentity = "racflow.identity"

// identityOf reads the identity of what somebody has made. What is not
// racflow's is of version 0.
func identityOf(have *entity.Collection) identity {
	for _, text := range []string{have.Schema.Description, have.Properties[propertyIdentity]} {
		var id identity
		if json.Unmarshal([]byte(text), &id) == nil && id.Version > 0 {
			return id
		}
	}
	return identity{}
}

func (id identity) String() string {
	text, err := json.Marshal(id)
	if err != nil {
		panic(err) // strings and checked numbers always encode
	}
	return string(text)
}

// tableName writes a name with what Milvus takes in one: letters, digits and
// underscores. Other bytes are two hexadecimal digits after an underscore;
// capitals too, which Milvus Lite 2 takes for small letters now and then.
func tableName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// width is the dimension of the vectors on the server, which wants two at
// least and a vector in every row.
func width(dimension int) int { return max(dimension, 2) }

func (c *collection) identity(s sdk.Schema) identity {
	return identity{schemaVersion, c.name, s.Dimension, s.Analyzer, c.server.config.K1, c.server.config.B}
}

func (c *collection) tableSchema(s sdk.Schema) *entity.Schema {
	varchar := func(name string, length int64) *entity.Field {
		return entity.NewField().WithName(name).WithDataType(entity.FieldTypeVarChar).WithMaxLength(length)
	}
	field := func(name string, t entity.FieldType) *entity.Field {
		return entity.NewField().WithName(name).WithDataType(t)
	}
	schema := entity.NewSchema().WithName(c.table).WithDescription(c.identity(s).String()).
		WithField(varchar(fieldKey, 64).WithIsPrimaryKey(true)).
		WithField(varchar(fieldID, maxBytes)).
		WithField(field(fieldSequence, entity.FieldTypeInt64)).
		WithField(field(fieldSlot, entity.FieldTypeInt64)).
		WithField(varchar(fieldLabel, maxBytes)).
		WithField(varchar(fieldContext, maxBytes)).
		WithField(varchar(fieldText, maxBytes)).
		WithField(field(fieldMeta, entity.FieldTypeJSON)).
		WithField(varchar(fieldDetails, maxBytes)).
		WithField(field(fieldVector, entity.FieldTypeFloatVector).WithDim(int64(width(s.Dimension))))
	if s.Analyzer != "" {
		schema.WithField(field(fieldWords, entity.FieldTypeSparseVector))
	}
	return schema
}

// describe returns what is on the server under the collection's name and
// checks that it is this collection. Without any it returns nil.
func (c *collection) describe(ctx context.Context, s sdk.Schema) (*entity.Collection, error) {
	described, err := c.server.describe(ctx, c.table)
	if err != nil || described == nil {
		return nil, err
	}
	return described, c.recognise(described, s)
}

// describe returns what is on the server under a name, or nil.
func (s *server) describe(ctx context.Context, table string) (*entity.Collection, error) {
	var described *entity.Collection
	err := s.call(ctx, "look for collection "+table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
		exists, err := m.HasCollection(ctx, table)
		if err == nil && exists {
			described, err = m.DescribeCollection(ctx, table)
		}
		return err
	})
	var fault *statusError
	if errors.As(err, &fault) && fault.missing() {
		return nil, nil
	}
	return described, err
}

// recognise refuses what is not this collection. It changes nothing on the
// server.
func (c *collection) recognise(have *entity.Collection, s sdk.Schema) error {
	id := identityOf(have)
	switch want := c.identity(s); {
	case id.Version == 0 || id.Collection != c.name:
		return sdk.Invalid(fmt.Errorf("collection %s on the server was not made by racflow and is left as it is: use another prefix or database", c.table))
	case id.Version > schemaVersion:
		return sdk.Invalid(fmt.Errorf("collection %s was made by a newer racflow (schema %d, this one knows %d): use that, or build it anew under another prefix", c.table, id.Version, schemaVersion))
	case id.Version < schemaVersion:
		return sdk.Invalid(fmt.Errorf("collection %s was made by an older racflow (schema %d, this one writes %d): build it anew under another prefix", c.table, id.Version, schemaVersion))
	case id.Dimension != want.Dimension:
		return sdk.Invalid(fmt.Errorf("collection %q has vectors of %d dimensions and the embedder gives %d: build it anew, under another name or prefix", c.name, id.Dimension, want.Dimension))
	case id.Analyzer != want.Analyzer:
		return sdk.Invalid(fmt.Errorf("collection %q was built with analyzer %q, not %q: build it anew, under another name or prefix", c.name, id.Analyzer, want.Analyzer))
	case id.Analyzer != "" && (id.K1 != want.K1 || id.B != want.B):
		return sdk.Invalid(fmt.Errorf("collection %q was built with k1 = %v and b = %v: use these, or build it anew under another prefix", c.name, id.K1, id.B))
	}
	missing := map[string]string{}
	for _, f := range c.tableSchema(s).Fields {
		missing[f.Name] = kindOf(f)
	}
	for _, f := range have.Schema.Fields {
		if missing[f.Name] != kindOf(f) {
			return sdk.Invalid(fmt.Errorf("collection %s on the server has a field %q of another type than racflow's and is left as it is: use another prefix or database", c.table, f.Name))
		}
		delete(missing, f.Name)
	}
	if len(missing) > 0 {
		return sdk.Invalid(fmt.Errorf("collection %s on the server lacks the fields %s of racflow's and is left as it is: use another prefix or database",
			c.table, strings.Join(slices.Sorted(maps.Keys(missing)), ", ")))
	}
	return nil
}

// kindOf is what has to be the same in a field.
func kindOf(f *entity.Field) string {
	return fmt.Sprint(f.DataType, f.PrimaryKey, f.TypeParams[entity.TypeParamDim])
}

// create makes the collection on the server.
func (c *collection) create(ctx context.Context, s sdk.Schema) error {
	if s.Dimension > maxDimension {
		return sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most that Milvus takes is %d", s.Dimension, maxDimension))
	}
	if len(c.table) > 255 {
		return sdk.Invalid(fmt.Errorf("the collection's name on the server, %s, is longer than the 255 characters that Milvus takes: use a shorter name", c.table))
	}
	err := c.server.call(ctx, "create collection "+c.table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
		return m.CreateCollection(ctx, c.tableSchema(s), int32(c.server.config.Shards),
			client.WithConsistencyLevel(entity.ClSession), client.WithCollectionProperty(propertyIdentity, c.identity(s).String()))
	})
	if described, lookErr := c.describe(ctx, s); lookErr != nil {
		return lookErr
	} else if described == nil {
		return fmt.Errorf("collection %s could not be made: %w", c.table, err)
	}
	return nil
}

// integer reads a number of an index's parameters.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return text
}
