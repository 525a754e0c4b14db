package milvus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/search"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/plugins/store/milvus/internal/transaction"
	"github.com/racflow/racflow/sdk"
)

// store implements sdk.Store. It is safe for concurrent use.
type store struct {
	server  *server.Server
	options table.Options
	log     *slog.Logger

	mu          sync.Mutex
	collections map[string]*collection
}

// vectorBytes is the memory for the vectors of a collection that hybrid searches have
// found: 5,461 of 384 dimensions. With more of them, reading each once takes longer than
// a run gains by it.
const vectorBytes = 8 << 20

// collection is one collection as this process writes and reads it.
type collection struct {
	view     *snapshot.View
	writer   *transaction.Writer
	searcher *search.Searcher
}

func (s *store) collection(name string) *collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.collections[name]
	if !ok {
		view := &snapshot.View{Collection: name}
		c = &collection{view, &transaction.Writer{View: view, Log: s.log}, &search.Searcher{View: view, Log: s.log, VectorBytes: vectorBytes}}
		s.collections[name] = c
	}
	return c
}

var errNoName = sdk.Invalid(errors.New("a collection needs a name"))

func (s *store) Open(ctx context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	if name == "" {
		return sdk.Collection{}, errNoName
	}
	t, err := table.New(s.server, s.options, name, schema)
	if err != nil {
		return sdk.Collection{}, err
	}
	last, err := s.collection(name).writer.Open(ctx, t)
	if err != nil {
		return sdk.Collection{}, err
	}
	return sdk.Collection{Entries: last.Record.Entries, Dimension: schema.Dimension, Note: slices.Clone(last.Note)}, nil
}

func (s *store) Put(ctx context.Context, name string, entries []sdk.Entry) error {
	fit, refused := row.WithoutLong(entries)
	if err := s.collection(name).writer.Put(ctx, fit); err != nil || len(refused) == 0 {
		return err
	}
	return refused
}

func (s *store) Delete(ctx context.Context, name string, ids []string) error {
	return s.collection(name).writer.Delete(ctx, ids)
}

func (s *store) Commit(ctx context.Context, name string, note []byte) error {
	return s.collection(name).writer.Commit(ctx, note)
}

func (s *store) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	return s.collection(name).searcher.Search(ctx, search, queries)
}

func (s *store) Get(ctx context.Context, name string, ids []string) ([]sdk.Entry, error) {
	return s.collection(name).searcher.Get(ctx, ids)
}

func (s *store) Scan(ctx context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	return s.collection(name).searcher.Scan(ctx, scan)
}

// List implements sdk.Store.
func (s *store) List(ctx context.Context) ([]sdk.Collection, error) {
	names, err := table.Names(ctx, s.server, s.options)
	if err != nil {
		return nil, err
	}
	var all []sdk.Collection
	for _, name := range names {
		found, err := s.describe(ctx, name)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			s.log.Warn("a collection on the server cannot be read", "collection", name, "error", err)
		case found.Name != "":
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b sdk.Collection) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// describe reads what is known of a table; one that somebody else has made has no
// name. A table that is not in the server's memory is loaded for a moment, because
// its record is one of its rows.
func (s *store) describe(ctx context.Context, name string) (sdk.Collection, error) {
	t, err := table.Find(ctx, s.server, s.options, name)
	if err != nil || t == nil {
		return sdk.Collection{}, err
	}
	loaded, err := t.Loaded(ctx)
	if err != nil {
		return sdk.Collection{}, err
	}
	if !loaded {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if err := t.Release(ctx); err != nil {
				s.log.Debug("could not release a collection", "collection", t.Collection, "error", err)
			}
		}()
	}
	if err := t.Prepare(ctx); err != nil {
		return sdk.Collection{}, err
	}
	return snapshot.Describe(ctx, t)
}

// Drop implements sdk.Store. It drops nothing that racflow has not made, and
// nothing that another process writes.
func (s *store) Drop(ctx context.Context, name string) error {
	if name == "" {
		return errNoName
	}
	return s.collection(name).writer.Drop(ctx, func(ctx context.Context) (*table.Table, error) {
		return table.Find(ctx, s.server, s.options, s.options.TableName(name))
	})
}

// Close drops what was not committed and ends the connection.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.writer.Close()
	}
	clear(s.collections)
	return s.server.Close()
}
