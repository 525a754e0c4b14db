package table

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Table is one collection on a server, for one schema. It is immutable after Prepare.
type Table struct {
	Server     *Server
	Options    Options
	Collection string            // its name in racflow; empty: the books
	Name       string            // its name on the server
	Schema     sdk.Schema        // of the entries
	Analyzer   *support.Analyzer // nil: no lexical leg
	IndexType  string            // of the vectors; empty: unknown
	OnServer   bool              // set by Exists and Create; otherwise reads find nothing
}

// version is part of every table. Raise it when the format of rows or records changes.
const version = 6

// identity identifies a collection on the server. It is stored both in the description and in a property, since some
// servers keep only one of them.
type identity struct {
	Version    int     `json:"racflow"`
	Collection string  `json:"collection"`
	Dimension  int     `json:"dimension"`
	Analyzer   string  `json:"analyzer"`
	K1         float64 `json:"k1"`
	B          float64 `json:"b"`
}

const propertyIdentity = "racflow.identity"

func (t *Table) identity() identity {
	return identity{version, t.Collection, t.Schema.Dimension, t.Schema.Analyzer, t.Options.K1, t.Options.B}
}

func (id identity) String() string {
	text, err := json.Marshal(id)
	if err != nil {
		panic(err) // strings and checked numbers can always be encoded
	}
	return string(text)
}

// identityOf reads the identity of a collection. A collection of another program has version 0.
func identityOf(have *milvuspb.DescribeCollectionResponse) identity {
	for _, text := range []string{have.GetSchema().GetDescription(), Param(have.GetProperties(), propertyIdentity)} {
		var id identity
		if json.Unmarshal([]byte(text), &id) == nil && id.Version > 0 {
			return id
		}
	}
	return identity{}
}

// Collections returns the names of all collections on the server.
func (s *Server) Collections(ctx context.Context) (names []string, err error) {
	err = s.Call(ctx, "list the collections", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		// The SDK expects ids, but Milvus Lite 2 returns only names.
		reply, err := c.Service.ShowCollections(ctx, &milvuspb.ShowCollectionsRequest{})
		names = reply.GetCollectionNames()
		return err
	})
	return names, err
}

// IsName reports whether a name on the server may belong to a table with the prefix.
func (o *Options) IsName(name string) bool {
	return strings.HasPrefix(name, o.Prefix+"_") && strings.HasSuffix(name, versionSuffix())
}

// FindTable returns the table with a name on the server; nil: there is none, or it is not racflow's.
func FindTable(ctx context.Context, s *Server, o Options, name string) (*Table, error) {
	have, err := s.Describe(ctx, name)
	if err != nil || have == nil {
		return nil, err
	}
	id := identityOf(have)
	if id.Version == 0 || o.TableName(id.Collection) != name {
		return nil, nil
	}
	return New(s, o, id.Collection, sdk.Schema{Dimension: id.Dimension, Analyzer: id.Analyzer})
}

// maxDimension is the greatest dimension that Milvus accepts.
const maxDimension = 32768

// schema returns the schema of the rows. The SDK's type lacks functions.
func (t *Table) schema() *schemapb.CollectionSchema {
	field := func(name string, typ schemapb.DataType, params ...string) *schemapb.FieldSchema {
		return &schemapb.FieldSchema{Name: name, DataType: typ, TypeParams: Pairs(params...)}
	}
	text := func(name string, params ...string) *schemapb.FieldSchema {
		return field(name, schemapb.DataType_VarChar, append(params, "max_length", strconv.Itoa(maxBytes))...)
	}
	schema := &schemapb.CollectionSchema{Name: t.Name, Description: t.identity().String(), Fields: []*schemapb.FieldSchema{
		field(FieldKey, schemapb.DataType_VarChar, "max_length", "64"), text(FieldID), text(FieldLabel), text(FieldContext), text(FieldText),
		field(FieldMeta, schemapb.DataType_JSON), text(FieldHash),
		field(FieldVector, schemapb.DataType_FloatVector, "dim", strconv.Itoa(FieldWidth(t.Schema.Dimension))),
	}}
	schema.Fields[0].IsPrimaryKey = true
	if t.Analyzer != nil {
		filled := field(FieldBM25, schemapb.DataType_SparseFloatVector)
		filled.IsFunctionOutput = true
		schema.Fields = append(schema.Fields, text(FieldWords, "enable_analyzer", "true", "analyzer_params", `{"tokenizer":"standard"}`), filled)
		schema.Functions = []*schemapb.FunctionSchema{{
			Name: FieldBM25, Type: schemapb.FunctionType_BM25, InputFieldNames: []string{FieldWords}, OutputFieldNames: []string{FieldBM25},
		}}
	}
	return schema
}

// Fields returns the fields of a row on the server.
func (t *Table) Fields() []*schemapb.FieldSchema { return t.schema().GetFields() }

// Exists reports whether the table is on the server, and sets OnServer. If another table has the name, it returns an
// error. It changes nothing on the server.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	have, err := t.Server.Describe(ctx, t.Name)
	if t.OnServer = have != nil; err != nil || have == nil {
		return false, err
	}
	return true, t.recognize(have)
}

// Describe returns the description of a collection on the server, or nil.
func (s *Server) Describe(ctx context.Context, name string) (have *milvuspb.DescribeCollectionResponse, err error) {
	err = s.Call(ctx, "describe collection "+name, func(ctx context.Context, c *client.GrpcClient, _ int) (err error) {
		have, err = c.Service.DescribeCollection(ctx, &milvuspb.DescribeCollectionRequest{CollectionName: name})
		return err
	})
	if IsMissing(err) {
		return nil, nil
	}
	return have, err
}

// recognize returns an error if the collection is not this table.
func (t *Table) recognize(have *milvuspb.DescribeCollectionResponse) error {
	id, want := identityOf(have), t.identity()
	refuse := func(format string, args ...any) error { return sdk.Invalid(fmt.Errorf(format, args...)) }
	switch {
	case id.Version == 0 || id.Collection != t.Collection:
		return refuse("collection %s on the server was not made by racflow and is left as it is: use another prefix or database", t.Name)
	case id.Version != version:
		return refuse("collection %s was not made by this version of racflow (schema %d, this one writes %d): build it anew under another prefix", t.Name, id.Version, version)
	case id.Dimension != want.Dimension:
		return refuse("collection %q has vectors of %d dimensions and the embedder gives %d: build it anew, under another name or prefix", t.Collection, id.Dimension, want.Dimension)
	case id.Analyzer != want.Analyzer:
		return refuse("collection %q was built with analyzer %q, not %q: build it anew, under another name or prefix", t.Collection, id.Analyzer, want.Analyzer)
	case id.Analyzer != "" && (id.K1 != want.K1 || id.B != want.B):
		return refuse("collection %q was built with k1 = %v and b = %v: use these, or build it anew under another prefix", t.Collection, id.K1, id.B)
	}
	return nil
}

// Create creates the table on the server, without indexes.
func (t *Table) Create(ctx context.Context) error {
	if t.Schema.Dimension > maxDimension {
		return sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most that Milvus takes is %d", t.Schema.Dimension, maxDimension))
	}
	if len(t.Name) > 255 {
		return sdk.Invalid(fmt.Errorf("the collection's name on the server, %s, is longer than the 255 characters that Milvus takes: use a shorter name", t.Name))
	}
	text, err := proto.Marshal(t.schema())
	if err != nil {
		return err
	}
	request := &milvuspb.CreateCollectionRequest{
		CollectionName: t.Name, Schema: text, ShardsNum: int32(t.Options.Shards), ConsistencyLevel: commonpb.ConsistencyLevel_Session,
		Properties: Pairs(propertyIdentity, t.identity().String()),
	}
	err = t.Server.Call(ctx, "create collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		_, err := c.Service.CreateCollection(ctx, request)
		return err
	})
	if exists, lookErr := t.Exists(ctx); lookErr != nil {
		return lookErr
	} else if !exists {
		if t.Analyzer != nil {
			return fmt.Errorf(`collection %s could not be made: %w; a search by words needs the BM25 function of Milvus 2.5 or later: without it, write analyzer = "" and mode = "dense"`, t.Name, err)
		}
		return fmt.Errorf("collection %s could not be made: %w", t.Name, err)
	}
	return nil // another process has created it meanwhile
}

// Drop removes the table from the server.
func (t *Table) Drop(ctx context.Context) error {
	return t.Server.Call(ctx, "drop collection "+t.Name, func(ctx context.Context, c *client.GrpcClient, _ int) error {
		return c.DropCollection(ctx, t.Name)
	})
}

// Options are the arguments for creating, writing and searching tables.
type Options struct {
	Prefix       string            `config:"prefix" affects_output:"false" default:"racflow" pattern:"^[A-Za-z][A-Za-z0-9]{0,30}$" example:"racflow" doc:"What the names of all collections on the server begin with."`
	Index        string            `config:"index" default:"auto" min_length:"1" doc:"Index of the vectors: auto is HNSW where the server has it, else AUTOINDEX. FLAT is exact."`
	IndexParams  map[string]string `config:"index_params" example:"{ M = \"32\" }" doc:"Parameters that the index is built with, as M and efConstruction of HNSW."`
	SearchParams map[string]string `config:"search_params" example:"{ ef = \"512\" }" doc:"Parameters of a search in it, as ef of HNSW; ef grows with num_candidates if not given."`
	SparseIndex  string            `config:"sparse_index" affects_output:"false" default:"SPARSE_INVERTED_INDEX" one_of:"SPARSE_INVERTED_INDEX,SPARSE_WAND" doc:"Index of the words. Both are exact."`
	K1           float64           `config:"k1" default:"1.2" min:"0" doc:"BM25: how soon more occurrences of a word stop to count, 0 or more."`
	B            float64           `config:"b" default:"0.75" min:"0" max:"1" doc:"BM25: how much long texts are held back, 0 to 1."`

	Consistency string `config:"consistency" default:"session" one_of:"strong,session,bounded,eventually" doc:"How new the rows must be that a search sees; by session, all that this run wrote."`
	Shards      int    `config:"shards" affects_output:"false" default:"1" min:"1" max:"64" doc:"Shards of a new collection."`
	Replicas    int    `config:"replicas" affects_output:"false" default:"1" min:"1" max:"64" doc:"Copies of a collection in the server's memory."`

	// Milvus accepts up to 2,000 rows at a time without slowing down (5,000 take many times as long), and messages of
	// 64 MiB.
	BatchRows  int `config:"batch_rows" affects_output:"false" default:"1000" min:"1" max:"2000" doc:"Most rows that are written at a time."`
	BatchBytes int `config:"batch_bytes" affects_output:"false" default:"8388608" min:"1" max:"50331648" doc:"About how many bytes are written at a time."`
}

// New returns a table without making a call. Its error is about the schema.
func New(s *Server, o Options, collection string, schema sdk.Schema) (*Table, error) {
	t := &Table{Server: s, Options: o, Collection: collection, Name: o.TableName(collection), Schema: schema}
	if schema.Analyzer != "" {
		a, err := support.StoredAnalyzer(schema.Analyzer)
		if err != nil {
			return nil, sdk.Invalid(err)
		}
		t.Analyzer = &a
	}
	return t, nil
}

// TableName returns a collection's name on the server. Milvus accepts letters, digits and underscores. Any other byte
// is written as an underscore and two hexadecimal digits; so are capitals, which Milvus Lite 2 sometimes confuses
// with small letters. The name ends with the version, so that another version of racflow builds a collection of its
// own.
func (o *Options) TableName(collection string) string {
	b := []byte(o.Prefix + "_")
	for i := range len(collection) {
		if c := collection[i]; 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, "_%02x", c)
		}
	}
	return string(b) + versionSuffix()
}

func versionSuffix() string { return fmt.Sprintf("_v%d", version) }

// call makes a call that needs the collection in the server's memory. It loads the collection if necessary: some
// servers unload collections at a restart.
func (t *Table) call(ctx context.Context, what string, do Call) error {
	err := t.Server.Call(ctx, what, do)
	if IsNotLoaded(err) {
		if err := t.load(ctx); err != nil {
			return err
		}
		err = t.Server.Call(ctx, what, do)
	}
	if IsMissing(err) {
		return sdk.Invalid(fmt.Errorf("collection %q is gone from the server: open it again: %w", t.Collection, err))
	}
	return err
}
