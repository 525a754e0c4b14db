package attached

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"

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
	*description
	*mapping
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
	c := &Collection{call: call, arguments: a, params: params, log: log, description: d}
	if c.mapping, err = newMapping(d, a.Fields); err != nil {
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
	if err := c.findParts(d, a.Fields, first); err != nil {
		return nil, err
	}
	if c.dimension, err = strconv.Atoi(pair(c.vector.GetTypeParams(), "dim")); err != nil {
		return nil, wrong("collection", "the server gives field %s no dimension: %w", c.vector.GetName(), err)
	}
	if c.entries, err = c.count(ctx); err != nil {
		return nil, err
	}
	return c, c.calibrate(ctx, first)
}

// Name is by which the server knows the collection itself, not an alias of it.
func (c *Collection) Name() string { return c.name }

// Describe says what was found.
func (c *Collection) Describe() sdk.Attached {
	return sdk.Attached{
		Name: c.name, ID: c.identity, Entries: c.entries, Dimension: c.dimension, Lexical: c.words != "", Labels: c.label != nil,
		Fields: slices.Clone(c.found), Notes: slices.Concat([]string{c.scores.note}, c.notes),
	}
}

// checkPartitions refuses partitions that are not there.
func (c *Collection) checkPartitions(ctx context.Context) error {
	if len(c.arguments.Partitions) == 0 {
		return nil
	}
	var names []string
	err := c.call(ctx, "list the partitions of "+c.name, func(ctx context.Context, s Service) error {
		reply, err := s.ShowPartitions(ctx, &milvuspb.ShowPartitionsRequest{CollectionName: c.name})
		names = reply.GetPartitionNames()
		return err
	})
	if server.IsUnimplemented(err) {
		return wrong("partitions", "the server has no partitions")
	}
	for _, name := range c.arguments.Partitions {
		if err == nil && !slices.Contains(names, name) {
			return wrong("partitions", "collection %q has no partition %q; it has %s", c.name, name, list(names))
		}
	}
	return err
}

// load makes sure that the collection is in the server's memory, which is its owner's
// to decide. It waits where the server is loading it.
func (c *Collection) load(ctx context.Context) error {
	for asked := false; ; {
		var state commonpb.LoadState
		err := c.call(ctx, "ask for the load state", func(ctx context.Context, s Service) error {
			reply, err := s.GetLoadState(ctx, &milvuspb.GetLoadStateRequest{CollectionName: c.name, PartitionNames: c.arguments.Partitions})
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
			err := c.call(ctx, "load collection "+c.name, func(ctx context.Context, s Service) error {
				_, err := s.LoadCollection(ctx, &milvuspb.LoadCollectionRequest{CollectionName: c.name})
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
