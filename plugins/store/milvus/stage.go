package milvus

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// Stage describes the store.
func Stage() sdk.Stage {
	return sdk.StoreStage("milvus", "Vector and BM25 search on a Milvus server, Milvus Lite or Zilliz Cloud.", open, sdk.Network(), sdk.Filters(), sdk.Validates(config.check))
}

// open connects nothing: that waits until a collection is opened.
func open(_ context.Context, setup sdk.Setup, c config) (sdk.Store, error) {
	server, err := newServer(c)
	if err != nil {
		return nil, err
	}
	log := setup.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &store{server: server, log: log, collections: map[string]*collection{}}, nil
}

// store implements sdk.Store. It is safe for concurrent use.
type store struct {
	server *server
	log    *slog.Logger

	mu          sync.Mutex
	collections map[string]*collection
}

func (s *store) Open(ctx context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	if name == "" {
		return sdk.Collection{}, sdk.Invalid(errors.New("a collection needs a name"))
	}
	return s.collection(name).open(ctx, schema)
}

func (s *store) Put(ctx context.Context, name string, entries []sdk.Entry) error {
	fit, refused := withoutLong(entries)
	if err := s.collection(name).put(ctx, fit); err != nil || len(refused) == 0 {
		return err
	}
	return refused
}

func (s *store) Delete(ctx context.Context, name string, ids []string) error {
	return s.collection(name).delete(ctx, ids)
}

func (s *store) Commit(ctx context.Context, name string, note []byte) error {
	return s.collection(name).commit(ctx, note)
}

func (s *store) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	return s.collection(name).search(ctx, search, queries)
}

func (s *store) Get(ctx context.Context, name string, ids []string) ([]sdk.Entry, error) {
	return s.collection(name).get(ctx, ids)
}

func (s *store) Scan(ctx context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	return s.collection(name).scan(ctx, scan)
}

// Close drops what was not committed and ends the connection.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.close()
	}
	clear(s.collections)
	return s.server.close()
}

// tableOf is a collection's name on the server.
func (s *store) tableOf(name string) string { return s.server.config.Prefix + "_" + tableName(name) }

func (s *store) collection(name string) *collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.collections[name]
	if !ok {
		c = s.unopened(name)
		s.collections[name] = c
	}
	return c
}

func (s *store) unopened(name string) *collection {
	return &collection{name: name, table: s.tableOf(name), server: s.server, log: s.log}
}
