package milvus

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk"
)

// List implements sdk.Store. Collections that were made with another k1 or b
// cannot be read with this config.
func (s *store) List(ctx context.Context) ([]sdk.Collection, error) {
	var tables []*entity.Collection
	err := s.server.call(ctx, "list the collections", func(ctx context.Context, m *client.GrpcClient, _ int) (err error) {
		tables, err = m.ListCollections(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []sdk.Collection
	for _, t := range tables {
		if !strings.HasPrefix(t.Name, s.tableOf("")) {
			continue
		}
		id, err := s.identify(ctx, t.Name)
		if err != nil || id.Version == 0 {
			continue // of somebody else, or gone meanwhile
		}
		// One of its own: what this process has open is not disturbed.
		found, err := s.unopened(id.Collection).open(ctx, sdk.Schema{Dimension: id.Dimension, Analyzer: id.Analyzer})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			s.log.Warn("a collection cannot be read", "collection", t.Name, "error", err)
			continue
		}
		found.Name = id.Collection
		list = append(list, found)
	}
	slices.SortFunc(list, func(a, b sdk.Collection) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Drop implements sdk.Store. It drops nothing that racflow has not made.
func (s *store) Drop(ctx context.Context, name string) error {
	c := s.collection(name)
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(ctx)
	}
	id, err := s.identify(ctx, c.table)
	if err != nil {
		return err
	}
	if id.Version > 0 {
		if err := c.prepare(ctx, sdk.Schema{Dimension: id.Dimension, Analyzer: id.Analyzer}); err != nil {
			return err
		}
		if _, err := c.takeLease(ctx); err != nil {
			return err
		}
		err := s.server.call(ctx, "drop collection "+c.table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
			return m.DropCollection(ctx, c.table)
		})
		var fault *statusError
		if err != nil && !(errors.As(err, &fault) && fault.missing()) {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.collections, name)
	return nil
}

// identify reads what a table on the server is. One that is not there, or not
// racflow's, is of version 0.
func (s *store) identify(ctx context.Context, table string) (id identity, err error) {
	var described *entity.Collection
	err = s.server.call(ctx, "look for collection "+table, func(ctx context.Context, m *client.GrpcClient, _ int) error {
		exists, err := m.HasCollection(ctx, table)
		if err == nil && exists {
			described, err = m.DescribeCollection(ctx, table)
		}
		return err
	})
	var fault *statusError
	switch {
	case errors.As(err, &fault) && fault.missing():
		return id, nil
	case err != nil || described == nil:
		return id, err
	}
	if json.Unmarshal([]byte(described.Schema.Description), &id) != nil || s.tableOf(id.Collection) != table {
		return identity{}, nil
	}
	return id, nil
}
