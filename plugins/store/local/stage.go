package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/racflow/racflow/plugins/store/local/internal/image"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Path sdk.Path `config:"path" affects_output:"false" doc:"Folder of the collections; the state folder if not given."`
	K1   float64  `config:"k1" default:"1.2" min:"0" doc:"BM25: how soon more occurrences of a word stop to count, 0 or more."`
	B    float64  `config:"b" default:"0.75" min:"0" max:"1" doc:"BM25: how much long texts are held back, 0 to 1."`
	Sync bool     `config:"sync" affects_output:"false" default:"true" doc:"Wait until a commit is on the disk. Without, a power failure may damage it."`
}

// Stage describes the store.
func Stage() sdk.Stage {
	return sdk.StoreStage("local", "Exact vector and BM25 search in this process, kept in a folder. Needs no server.", open, sdk.Filters())
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Store, error) {
	if !image.LittleEndian() {
		return nil, errors.New("store local keeps numbers as little-endian machines do and cannot run on this one: use another store")
	}
	if c.Path == "" {
		c.Path = sdk.Path(setup.StateDir)
	}
	if c.Path == "" {
		return nil, &sdk.ArgumentError{Argument: "path", Err: errors.New("there is no state folder: give a path")}
	}
	log := setup.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &store{config: c, limits: defaultLimits(), log: log, collections: map[string]*collection{}}, nil
}

// store implements sdk.Store. It is safe for concurrent use.
type store struct {
	config config
	limits limits
	log    *slog.Logger

	mu          sync.Mutex
	collections map[string]*collection
}

func (s *store) Open(_ context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	if name == "" {
		return sdk.Collection{}, sdk.Invalid(errors.New("a collection needs a name"))
	}
	return s.collection(name).open(schema)
}

func (s *store) Put(_ context.Context, name string, entries []sdk.Entry) error {
	return s.collection(name).put(entries)
}

func (s *store) Delete(_ context.Context, name string, ids []string) error {
	return s.collection(name).delete(ids)
}

func (s *store) Commit(_ context.Context, name string, note []byte) error {
	return s.collection(name).commit(note)
}

func (s *store) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	return read(s.collection(name), func(v *version) ([]sdk.Hits, error) { return v.Search(ctx, search, queries) })
}

func (s *store) Get(_ context.Context, name string, ids []string) ([]sdk.Entry, error) {
	return read(s.collection(name), func(v *version) ([]sdk.Entry, error) { return v.Entries(ids), nil })
}

func (s *store) Scan(_ context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	return read(s.collection(name), func(v *version) (sdk.Page, error) { return v.Page(scan) })
}

// Close drops what was not committed.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.close()
	}
	clear(s.collections)
	return nil
}

func (s *store) collection(name string) *collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.collections[name]
	if !ok {
		c = &collection{name: name, dir: filepath.Join(string(s.config.Path), folder(name)), config: s.config, limits: s.limits, log: s.log}
		s.collections[name] = c
	}
	return c
}

// folder returns a collection's name as a file name, one of its own even where
// the file system does not tell capitals from small letters.
func folder(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
