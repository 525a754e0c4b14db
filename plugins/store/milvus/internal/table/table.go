package table

import (
	"context"
	"fmt"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// Options are the arguments that say how tables are made, written and searched.
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

	// Milvus takes up to 2,000 rows at a time without slowing down (5,000 take it
	// many times as long), and messages of 64 MiB.
	BatchRows  int `config:"batch_rows" affects_output:"false" default:"1000" min:"1" max:"2000" doc:"Most rows that are written at a time."`
	BatchBytes int `config:"batch_bytes" affects_output:"false" default:"8388608" min:"1" max:"50331648" doc:"About how many bytes are written at a time."`
}

// Table is one collection on a server, for one schema. Nothing in it changes once
// it is prepared.
type Table struct {
	Server     *server.Server
	Options    Options
	Collection string            // its name in racflow
	Name       string            // its name on the server
	Schema     sdk.Schema        // of the entries
	Analyzer   *analyze.Analyzer // nil: no lexical leg
	IndexType  string            // of the vectors; empty: not known
}

// New makes no call. The error is about the schema.
func New(s *server.Server, o Options, collection string, schema sdk.Schema) (*Table, error) {
	t := &Table{Server: s, Options: o, Collection: collection, Name: o.TableName(collection), Schema: schema}
	if schema.Analyzer != "" {
		a, err := analyze.Named(schema.Analyzer)
		if err != nil {
			return nil, sdk.Invalid(err)
		}
		t.Analyzer = &a
	}
	return t, nil
}

// TableName is a collection's name on the server, with what Milvus takes in one:
// letters, digits and underscores. Other bytes are two hexadecimal digits after an
// underscore; capitals too, which Milvus Lite 2 takes for small letters now and then.
func (o *Options) TableName(collection string) string {
	b := []byte(o.Prefix + "_")
	for i := range len(collection) {
		if c := collection[i]; 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, "_%02x", c)
		}
	}
	return string(b)
}

// call is for what needs the collection in the server's memory: it loads it where
// the server has forgotten that, as some do at a restart.
func (t *Table) call(ctx context.Context, what string, do func(ctx context.Context, c *client.GrpcClient, attempt int) error) error {
	err := t.Server.Call(ctx, what, do)
	if server.IsNotLoaded(err) {
		if err := t.load(ctx); err != nil {
			return err
		}
		err = t.Server.Call(ctx, what, do)
	}
	if server.IsMissing(err) {
		return sdk.Invalid(fmt.Errorf("collection %q is gone from the server: open it again: %w", t.Collection, err))
	}
	return err
}
