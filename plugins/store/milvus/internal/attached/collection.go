package attached

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// Collection is an attached collection as it was found. Nothing in it changes: it is
// safe for concurrent use.
type Collection struct {
	call      Caller
	arguments Arguments
	params    map[string]string // of a search in the vectors' index, from the file
	log       *slog.Logger
	*mapping.Schema
	*mapping.Mapping
	dimension int
	entries   int
	rowBytes  int // of a whole row, about
	scores    scores
}

// sampleRows is how many rows are read to see what they hold.
const sampleRows = 20

// Attach finds the collection that the arguments name. params are parameters of a
// search in its index, such as ef of HNSW.
func Attach(ctx context.Context, call Caller, a Arguments, params map[string]string, log *slog.Logger) (*Collection, error) {
	d, err := describe(ctx, call, a)
	if err != nil {
		return nil, err
	}
	c := &Collection{call: call, arguments: a, params: params, log: log, Schema: d}
	if c.Mapping, err = mapping.New(d, a.Fields); err != nil {
		return nil, err
	}
	if err := c.checkPartitions(ctx); err != nil {
		return nil, err
	}
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	first, size, err := c.first(ctx)
	if err != nil {
		return nil, err
	}
	c.rowBytes = max(1, size/max(1, len(first)))
	if err := c.FindParts(d, a.Fields, first); err != nil {
		return nil, err
	}
	if c.dimension, err = strconv.Atoi(mapping.Param(c.Vector.GetTypeParams(), "dim")); err != nil {
		return nil, mapping.Wrong("collection", "the server gives field %s no dimension: %w", c.Vector.GetName(), err)
	}
	if c.entries, err = c.count(ctx); err != nil {
		return nil, err
	}
	return c, c.calibrate(ctx, first)
}

// Describe says what was found.
func (c *Collection) Describe() sdk.Attached {
	return sdk.Attached{
		Name: c.Name, ID: c.Identity, Entries: c.entries, Dimension: c.dimension, Lexical: c.Words != "", Labels: c.Label != nil,
		Fields: slices.Clone(c.Found), Notes: slices.Concat([]string{c.scores.note}, c.Notes),
	}
}

// checkPartitions refuses partitions that are not there.
func (c *Collection) checkPartitions(ctx context.Context) error {
	if len(c.arguments.Partitions) == 0 {
		return nil
	}
	var names []string
	err := c.call(ctx, "list the partitions of "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.ShowPartitions(ctx, &milvuspb.ShowPartitionsRequest{CollectionName: c.Name})
		names = reply.GetPartitionNames()
		return err
	})
	if server.IsUnimplemented(err) {
		return mapping.Wrong("partitions", "the server has no partitions")
	}
	for _, name := range c.arguments.Partitions {
		if err == nil && !slices.Contains(names, name) {
			return mapping.Wrong("partitions", "collection %q has no partition %q; it has %s", c.Name, name, mapping.List(names))
		}
	}
	return err
}

// load makes sure that the collection is in the server's memory, which is its owner's
// to decide. It waits where the server is loading it, which may take long.
func (c *Collection) load(ctx context.Context) error {
	asked, told := false, false
	for {
		var state commonpb.LoadState
		err := c.call(ctx, "ask for the load state", func(ctx context.Context, s Service) error {
			reply, err := s.GetLoadState(ctx, &milvuspb.GetLoadStateRequest{CollectionName: c.Name, PartitionNames: c.arguments.Partitions})
			state = reply.GetState()
			return err
		})
		switch {
		case err != nil:
			return c.explainError(err)
		case state == commonpb.LoadState_LoadStateLoaded:
			return nil
		case state == commonpb.LoadState_LoadStateLoading || asked:
		case !c.arguments.Load:
			return c.notLoaded()
		default:
			asked = true
			err := c.call(ctx, "load collection "+c.Name, func(ctx context.Context, s Service) error {
				_, err := s.LoadCollection(ctx, &milvuspb.LoadCollectionRequest{CollectionName: c.Name})
				return err
			})
			if err != nil {
				return err
			}
		}
		if !told {
			told = true
			c.log.Info("waiting until the server has loaded the collection into its memory", "collection", c.Name)
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
