package milvus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/racflow/racflow/sdk"
)

// List implements sdk.Store. One that is not in the server's memory is loaded
// for a moment, because its record is one of its rows.
func (s *store) List(ctx context.Context) ([]sdk.Collection, error) {
	var tables []string
	err := s.server.call(ctx, "list the collections", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		// The SDK counts ids, and Milvus Lite 2 gives only names.
		reply, err := m.Service.ShowCollections(ctx, &milvuspb.ShowCollectionsRequest{})
		tables = reply.GetCollectionNames()
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []sdk.Collection
	for _, t := range tables {
		if !strings.HasPrefix(t, s.tableOf("")) {
			continue
		}
		found, err := s.look(ctx, t)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			s.log.Warn("a collection on the server cannot be read", "collection", t, "error", err)
		case found.Name != "":
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b sdk.Collection) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// look reads what is known of a collection from its name on the server. What
// is not there, or made by somebody else, has no name.
func (s *store) look(ctx context.Context, table string) (sdk.Collection, error) {
	id, err := s.identify(ctx, table)
	if err != nil || id.Version == 0 {
		return sdk.Collection{}, err
	}
	c := s.unopened(id.Collection) // what this process has open is not disturbed
	loaded, err := c.loaded(ctx)
	if err != nil {
		return sdk.Collection{}, err
	}
	if !loaded {
		defer c.unload(ctx)
	}
	if err := c.prepare(ctx, id.schema()); err != nil {
		return sdk.Collection{}, err
	}
	r, note, err := c.readNote(ctx)
	return sdk.Collection{Name: id.Collection, Entries: r.Entries, Dimension: id.Dimension, Note: note}, err
}

// identify reads what a table on the server is. One that is not there, or not
// racflow's, is of version 0.
func (s *store) identify(ctx context.Context, table string) (id identity, err error) {
	described, err := s.server.describe(ctx, table)
	if err != nil || described == nil {
		return id, err
	}
	if id = identityOf(described); s.tableOf(id.Collection) != table {
		return identity{}, nil
	}
	return id, nil
}

func (id identity) schema() sdk.Schema {
	return sdk.Schema{Dimension: id.Dimension, Analyzer: id.Analyzer}
}

// unload undoes a load that was for a moment only.
func (c *collection) unload(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := c.server.call(ctx, "release collection "+c.table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
		return m.ReleaseCollection(ctx, c.table)
	})
	if err != nil {
		c.log.Debug("could not release a collection", "collection", c.name, "error", err)
	}
}

// Drop implements sdk.Store. It drops nothing that racflow has not made, and
// nothing that another process writes.
func (s *store) Drop(ctx context.Context, name string) error {
	if name == "" {
		return sdk.Invalid(errors.New("a collection needs a name"))
	}
	c := s.collection(name)
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(ctx)
	}
	id, err := s.identify(ctx, c.table)
	if err == nil && id.Version > 0 {
		err = c.dropTable(ctx, id)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exists, c.state = false, nil
	return nil
}

func (c *collection) dropTable(ctx context.Context, id identity) error {
	if err := c.prepare(ctx, id.schema()); err != nil {
		return err
	}
	c.mu.Lock()
	if c.state == nil { // the lease is a row, and what a row has is in the state
		c.exists, c.state = true, emptyState(shape{schema: id.schema()})
	}
	c.mu.Unlock()
	if _, err := c.takeLease(ctx); err != nil {
		return err
	}
	return c.server.call(ctx, "drop collection "+c.table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
		return m.DropCollection(ctx, c.table)
	})
}
