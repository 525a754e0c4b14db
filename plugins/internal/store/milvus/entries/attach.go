package entries

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Arguments name a collection of another program.
type Arguments struct {
	Collection string   `config:"collection" example:"docs" doc:"A collection that another program makes, or an alias of one: it is read and never written. The knowledge then has no source."`
	Partitions []string `config:"partitions" requires:"collection" doc:"Partitions of that collection to read; all if not given."`
	Fields     Fields   `config:"fields" requires:"collection" doc:"Where the parts of its entries are. What is not given is found by type and usual names; plan shows what was found."`
	Normalized bool     `config:"normalized" requires:"collection" doc:"All vectors of that collection have norm 1: the server's scores by IP and L2 are read as cosines. Without, cosines are computed from vectors that the server sends."`
	Load       bool     `config:"load" requires:"collection" affects_output:"false" doc:"Have the server load that collection into its memory if it is not there; else that is left to its owner."`
}

// sampleRows is how many rows are read to find out what the fields contain.
const sampleRows = 20

// Attach opens the collection that the arguments name. params are search parameters of its index, such as ef of HNSW.
func Attach(ctx context.Context, server *table.Server, a Arguments, params map[string]string, log *slog.Logger) (*Collection, error) {
	d, err := describe(ctx, server, a)
	if err != nil {
		return nil, err
	}
	c := &Collection{server: server, arguments: a, params: params, log: log, Schema: d, Mapping: &Mapping{}}
	c.rows = func() table.Rows {
		return table.Rows{
			Collection: c.Name, Partitions: a.Partitions, Key: c.Key.GetName(), WholeKeys: Place{Field: c.Key}.Is(whole...), Default: true,
			Call: func(ctx context.Context, what string, do table.Call) error {
				return c.explainError(server.Call(ctx, what, do))
			},
		}
	}
	if d.Indexes, err = c.rows().Indexes(ctx); err != nil {
		return nil, err
	}
	if c.Mapping, err = newMapping(d, a.Fields); err != nil {
		return nil, err
	}
	if err := c.checkPartitions(ctx); err != nil {
		return nil, err
	}
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	first, err := c.sample(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.findParts(d, a.Fields, first); err != nil {
		return nil, err
	}
	if c.dimension, err = strconv.Atoi(table.Param(c.Vector.GetTypeParams(), "dim")); err != nil {
		return nil, wrong("collection", "the server gives field %s no dimension: %w", c.Vector.GetName(), err)
	}
	c.entries, err = c.rows().Count(ctx, "")
	return c, err
}

// Describe describes the attached collection.
func (c *Collection) Describe() sdk.Attached {
	return sdk.Attached{
		Name: c.Name, ID: c.Identity, Entries: c.entries, Dimension: c.dimension, Lexical: c.Words != "", Labels: c.Label != nil,
		Fields: slices.Clone(c.Found), Notes: slices.Concat([]string{c.scores(0).note()}, c.Notes),
	}
}

// sample reads the first rows. It includes JSON fields, since only rows show their members.
func (c *Collection) sample(ctx context.Context) ([]*table.ReplyRow, error) {
	names := []string{c.Key.GetName()}
	for _, f := range c.Fields {
		if f.GetDataType() == schemapb.DataType_JSON {
			names = append(names, f.GetName())
		}
	}
	if len(names) == 1 {
		return nil, nil
	}
	rows, _, err := c.rows().Query(ctx, "", names, sampleRows)
	return rows, err
}

// checkPartitions returns an error for partitions that do not exist.
func (c *Collection) checkPartitions(ctx context.Context) error {
	if len(c.arguments.Partitions) == 0 {
		return nil
	}
	var names []string
	err := c.server.Call(ctx, "list the partitions of "+c.Name, func(ctx context.Context, s *client.GrpcClient, _ int) error {
		reply, err := s.Service.ShowPartitions(ctx, &milvuspb.ShowPartitionsRequest{CollectionName: c.Name})
		names = reply.GetPartitionNames()
		return err
	})
	if status.Code(err) == codes.Unimplemented {
		return wrong("partitions", "the server has no partitions")
	}
	for _, name := range c.arguments.Partitions {
		if err == nil && !slices.Contains(names, name) {
			return wrong("partitions", "collection %q has no partition %q; it has %s", c.Name, name, list(names))
		}
	}
	return err
}

// load waits until the server has loaded the collection into memory, which may take long. It does not start loading:
// the collection's owner decides that.
func (c *Collection) load(ctx context.Context) error {
	for {
		var state commonpb.LoadState
		err := c.server.Call(ctx, "ask for the load state", func(ctx context.Context, s *client.GrpcClient, _ int) error {
			reply, err := s.Service.GetLoadState(ctx, &milvuspb.GetLoadStateRequest{CollectionName: c.Name, PartitionNames: c.arguments.Partitions})
			state = reply.GetState()
			return err
		})
		switch {
		case err != nil:
			return c.explainError(err)
		case state == commonpb.LoadState_LoadStateLoaded:
			return nil
		case state == commonpb.LoadState_LoadStateLoading:
		case !c.arguments.Load:
			return wrong("load", "collection %q is not in the server's memory: its owner has to load it, or the file says load = true", c.Name)
		default:
			c.log.Info("waiting until the server has loaded the collection into its memory", "collection", c.Name)
			err := c.server.Call(ctx, "load collection "+c.Name, func(ctx context.Context, s *client.GrpcClient, _ int) error {
				_, err := s.Service.LoadCollection(ctx, &milvuspb.LoadCollectionRequest{CollectionName: c.Name})
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := support.SleepFor(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// describe asks the server for the schema. It returns an error if the server does not know the name.
func describe(ctx context.Context, server *table.Server, a Arguments) (*Schema, error) {
	reply, err := server.Describe(ctx, a.Collection)
	switch {
	case err != nil:
		return nil, err
	case reply == nil:
		return nil, noCollection(ctx, server, a.Collection)
	}
	schema := reply.GetSchema()
	// Milvus Lite 2, which has no aliases, returns no name here. Milvus 2.3 returns the alias.
	d := &Schema{Name: cmp.Or(reply.GetCollectionName(), a.Collection), Fields: schema.GetFields(), Functions: schema.GetFunctions()}
	if slices.Contains(reply.GetAliases(), d.Name) && schema.GetName() != "" {
		d.Name = schema.GetName()
	}
	d.IsAlias = slices.Contains(reply.GetAliases(), d.Name)
	isDynamic := func(f *schemapb.FieldSchema) bool { return f.GetIsDynamic() }
	if schema.GetEnableDynamicField() && !slices.ContainsFunc(d.Fields, isDynamic) {
		d.Fields = append(d.Fields, &schemapb.FieldSchema{Name: dynamicField, DataType: schemapb.DataType_JSON, IsDynamic: true})
	}
	identify(d, reply)
	return d, nil
}

// identify sets the identity. Milvus Lite has no ids, so the schema is a part of it.
func identify(d *Schema, reply *milvuspb.DescribeCollectionResponse) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d", reply.GetDbName(), d.Name, reply.GetCollectionID(), reply.GetCreatedTimestamp())
	for _, f := range d.Fields {
		fmt.Fprintf(h, " %q %v %v %q", f.GetName(), f.GetDataType(), f.GetIsPrimaryKey(), table.Param(f.GetTypeParams(), "dim"))
	}
	d.Identity = hex.EncodeToString(h.Sum(nil)[:12])
}

// noCollection is an error that lists the existing collections.
func noCollection(ctx context.Context, server *table.Server, name string) error {
	names, _ := server.Collections(ctx)
	there := "the server shows none; look at address and database"
	if slices.Sort(names); len(names) > 0 {
		there = "the server has " + list(names)
	}
	return wrong("collection", "there is no collection %q and no alias of that name: %s", name, there)
}

// explainError explains a failed call for an attached collection.
func (c *Collection) explainError(err error) error {
	switch {
	case table.IsMissing(err):
		return sdk.Invalid(fmt.Errorf("collection %q is gone from the server; somebody dropped or renamed it: see to it, then start again: %w", c.Name, err))
	case table.IsNotLoaded(err):
		return sdk.Invalid(fmt.Errorf("collection %q is not in the server's memory any more: its owner has to load it; with load = true in the file the next start does", c.Name))
	}
	return err
}
