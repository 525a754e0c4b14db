package table

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
)

// Version is part of every table: raise it when rows or records are written in
// another way.
const Version = 4

// identity says what a collection on the server is: in its description and in
// a property, of which some servers keep only the one and some only the other.
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
	return identity{Version, t.Collection, t.Schema.Dimension, t.Schema.Analyzer, t.Options.K1, t.Options.B}
}

func (id identity) String() string {
	text, err := json.Marshal(id)
	if err != nil {
		panic(err) // strings and checked numbers always encode
	}
	return string(text)
}

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

// Names lists the tables on the server that have the prefix.
func Names(ctx context.Context, s *server.Server, o Options) ([]string, error) {
	var names []string
	err := s.Call(ctx, "list the collections", func(ctx context.Context, c *client.GrpcClient, _ int) error {
		// The SDK counts ids, and Milvus Lite 2 gives only names.
		reply, err := c.Service.ShowCollections(ctx, &milvuspb.ShowCollectionsRequest{})
		names = nil
		for _, name := range reply.GetCollectionNames() {
			if strings.HasPrefix(name, o.TableName("")) {
				names = append(names, name)
			}
		}
		return err
	})
	return names, err
}

// Find returns the table with a name on the server; nil: there is none, or not
// one of racflow's.
func Find(ctx context.Context, s *server.Server, o Options, name string) (*Table, error) {
	have, err := describe(ctx, s, name)
	if err != nil || have == nil {
		return nil, err
	}
	id := identityOf(have)
	if id.Version == 0 || o.TableName(id.Collection) != name {
		return nil, nil
	}
	return New(s, o, id.Collection, sdk.Schema{Dimension: id.Dimension, Analyzer: id.Analyzer})
}
