package mapping

import (
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// DynamicField is the name of the field that holds what no field was declared for.
const DynamicField = "$meta"

// Schema is what a server says of a collection.
type Schema struct {
	Name      string // its own, where it was asked for by an alias
	Identity  string // of this collection, as well as the server can tell
	Anonymous bool   // the server gives collections no ids
	IsAlias   bool   // the name is an alias: the server does not say which collection it leads to
	Fields    []*schemapb.FieldSchema
	Functions []*schemapb.FunctionSchema
	Indexes   map[string]map[string]string // of each field: parameters, index_type and metric_type among them
}

func (d *Schema) field(name string) *schemapb.FieldSchema {
	for _, f := range d.Fields {
		if f.GetName() == name {
			return f
		}
	}
	return nil
}

func (d *Schema) primary() *schemapb.FieldSchema {
	for _, f := range d.Fields {
		if f.GetIsPrimaryKey() {
			return f
		}
	}
	return nil
}

// wordsInput is the field that a BM25 function reads to fill another one; nil: not
// known.
func (d *Schema) wordsInput(filled string) *schemapb.FieldSchema {
	for _, f := range d.Functions {
		if slices.Contains(f.GetOutputFieldNames(), filled) && len(f.GetInputFieldNames()) == 1 {
			return d.field(f.GetInputFieldNames()[0])
		}
	}
	return nil
}

func (d *Schema) names() string {
	var names []string
	for _, f := range d.Fields {
		names = append(names, f.GetName())
	}
	return List(names)
}

// Param is a value among those of a server; empty: it is not there.
func Param(pairs []*commonpb.KeyValuePair, key string) string {
	for _, p := range pairs {
		if p.GetKey() == key {
			return p.GetValue()
		}
	}
	return ""
}
