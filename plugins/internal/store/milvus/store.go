package milvus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// store implements sdk.Store. It is safe for concurrent use.
type store struct {
	reads
	server  *table.Server
	options table.Options
	log     *slog.Logger

	mu          sync.Mutex
	collections map[string]*writer

	opening sync.Mutex
	opened  *table.Table // the books
}

// reader implements sdk.Attacher: it serves one collection of another program. It is safe for concurrent use.
type reader struct {
	reads
	server    *table.Server
	arguments entries.Arguments
	params    map[string]string
	log       *slog.Logger

	mu    sync.Mutex
	found map[string]*entries.Collection // by name: if an alias moves, running searches continue with the old collection
}

// Attach implements sdk.Attacher.
func (r *reader) Attach(ctx context.Context) (sdk.Attached, error) {
	found, err := entries.Attach(ctx, r.server, r.arguments, r.params, r.log)
	if err != nil {
		return sdk.Attached{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil {
		r.found = map[string]*entries.Collection{}
	}
	r.found[found.Name] = found
	return found.Describe(), nil
}

func (r *reader) collection(name string) (*entries.Collection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.found[name]; found != nil {
		return found, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("collection %q is not attached", name))
}

// reads implements the reading methods. It finds collections by name.
type reads func(name string) (*entries.Collection, error)

func (find reads) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	c, err := find(name)
	if err != nil {
		return nil, err
	}
	return c.Search(ctx, search, queries)
}

func (find reads) Get(ctx context.Context, name string, ids []string) ([]sdk.Entry, error) {
	c, err := find(name)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, ids)
}

func (find reads) Scan(ctx context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	c, err := find(name)
	if err != nil {
		return sdk.Page{}, err
	}
	return c.Scan(ctx, scan)
}

var errReadOnly = sdk.Invalid(errors.New("a collection that another program makes is read only: leave out the argument collection to build one"))

func (r *reader) Open(context.Context, string, sdk.Schema) (sdk.Collection, error) {
	return sdk.Collection{}, errReadOnly
}
func (r *reader) Put(context.Context, string, []sdk.Entry) error { return errReadOnly }
func (r *reader) Delete(context.Context, string, []string) error { return errReadOnly }
func (r *reader) Commit(context.Context, string, []byte) error   { return errReadOnly }
func (r *reader) Drop(context.Context, string) error             { return errReadOnly }
func (r *reader) List(context.Context) ([]sdk.Collection, error) { return nil, nil }
func (r *reader) Close() error                                   { return r.server.Close() }

// config are the arguments of the stage.
type config struct {
	table.ServerConfig
	table.Options
	entries.Arguments
}

// Stage describes the store.
func Stage() sdk.Stage {
	return sdk.StoreStage("milvus", "Vector and BM25 search on a Milvus server, Milvus Lite or Zilliz Cloud.", open, sdk.Network(), sdk.Addresses(config.addresses), sdk.Filters(), sdk.Attaches("collection"), sdk.Validates(config.check))
}

func (c config) addresses() map[string]string { return map[string]string{"": c.Address} }

// check reports the errors that tags cannot find.
func (c config) check() error {
	_, err := table.NewServer(c.ServerConfig)
	return err
}

// open does not connect: the connection is made when a collection is opened or attached.
func open(_ context.Context, setup sdk.Setup, c config) (sdk.Store, error) {
	s, err := table.NewServer(c.ServerConfig)
	if err != nil {
		return nil, err
	}
	log := setup.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if c.Collection != "" {
		r := &reader{server: s, arguments: c.Arguments, params: c.SearchParams, log: log}
		r.reads = r.collection
		return r, nil
	}
	w := &store{server: s, options: c.Options, log: log, collections: map[string]*writer{}}
	w.reads = func(name string) (*entries.Collection, error) {
		k, err := w.collection(name).opened()
		if err != nil {
			return nil, err
		}
		return k.reads, nil
	}
	return w, nil
}

// books returns the table with the rows of all collections; nil: it does not exist and make is false.
func (s *store) books(ctx context.Context, make bool) (*table.Table, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	t, err := table.New(s.server, s.options, "", sdk.Schema{})
	if err != nil {
		return nil, err
	}
	exists, err := t.Exists(ctx)
	if err == nil && !exists {
		if !make {
			return nil, nil
		}
		err = t.Create(ctx)
	}
	if err == nil {
		err = t.Prepare(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.opened = t
	return t, nil
}

// collection returns this process's writer of a collection.
func (s *store) collection(name string) *writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.collections[name]
	if !ok {
		w = &writer{collection: name, books: s.books, log: s.log}
		s.collections[name] = w
	}
	return w
}

var errNoName = sdk.Invalid(errors.New("a collection needs a name"))

func (s *store) Open(ctx context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	if name == "" {
		return sdk.Collection{}, errNoName
	}
	schema.Analyzer = support.StoredName(schema.Analyzer)
	t, err := table.New(s.server, s.options, name, schema)
	if err != nil {
		return sdk.Collection{}, err
	}
	return s.collection(name).open(ctx, t)
}

func (s *store) Put(ctx context.Context, name string, entries []sdk.Entry) error {
	return s.collection(name).put(ctx, entries)
}

func (s *store) Delete(ctx context.Context, name string, ids []string) error {
	return s.collection(name).remove(ctx, ids)
}

func (s *store) Commit(ctx context.Context, name string, note []byte) error {
	return s.collection(name).commit(ctx, note)
}

// List implements sdk.Store.
func (s *store) List(ctx context.Context) ([]sdk.Collection, error) {
	names, err := s.server.Collections(ctx)
	if err != nil {
		return nil, err
	}
	var all []sdk.Collection
	for _, name := range names {
		if !s.options.IsName(name) {
			continue
		}
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

// describe reads the description of a table. For a table of another program the result has no name.
func (s *store) describe(ctx context.Context, name string) (sdk.Collection, error) {
	t, err := table.FindTable(ctx, s.server, s.options, name)
	if err != nil || t == nil || t.Collection == "" {
		return sdk.Collection{}, err
	}
	books, err := s.books(ctx, false)
	if err != nil {
		return sdk.Collection{}, err
	}
	last, note, err := book{books, t.Collection}.readLast(ctx)
	return sdk.Collection{Name: t.Collection, Entries: last.Entries, Dimension: t.Schema.Dimension, Note: note}, err
}

// Drop implements sdk.Store. It drops only tables that racflow has made and that no other process is writing.
func (s *store) Drop(ctx context.Context, name string) error {
	if name == "" {
		return errNoName
	}
	return s.collection(name).drop(ctx, func(ctx context.Context) (*table.Table, error) {
		return table.FindTable(ctx, s.server, s.options, s.options.TableName(name))
	})
}

// Close drops uncommitted changes and closes the connection.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.close()
	}
	clear(s.collections)
	return s.server.Close()
}
