package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/search"
	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// collection is a collection that this process has opened.
type collection struct {
	name, dir string
	config    config
	limits    limits
	log       *slog.Logger

	// writing is held while the collection is changed or opened. It guards staged and dropped.
	writing sync.Mutex
	staged  *transaction // nil: no change since the last commit
	dropped bool         // an error undid changes, and the writer may not know it
	busy    atomic.Bool  // staged is not nil: no other process can have written

	// now is the version that searches read, without waiting.
	now atomic.Pointer[version] // nil: not opened yet
}

// version is the state of a collection at one commit.
type version struct {
	segment.LogState
	*search.Searcher
}

func (c *collection) version(now segment.LogState, s *segment.Snapshot) *version {
	return &version{now, search.NewSearcher(s, c.config.K1, c.config.B)}
}

func (c *collection) path() string { return filepath.Join(c.dir, "log") }

// open reads the committed state, unless this process has it already, and drops staged changes. While a change is
// running it does neither.
func (c *collection) open(schema sdk.Schema) (sdk.Collection, error) {
	if schema.Dimension < 0 || schema.Dimension > segment.MaxDimension {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("vectors of %d dimensions: the most is %d", schema.Dimension, segment.MaxDimension))
	}
	for !c.writing.TryLock() {
		if s := c.now.Load(); s != nil && c.busy.Load() {
			return c.opened(s, schema) // a commit may take long, and its result does not exist yet
		}
		time.Sleep(time.Millisecond)
	}
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(true)
	}
	if err := c.refresh(schema); err != nil {
		return sdk.Collection{}, err
	}
	found, err := c.opened(c.now.Load(), schema)
	if err == nil {
		c.dropped = false
	}
	return found, err
}

func (c *collection) opened(s *version, schema sdk.Schema) (sdk.Collection, error) {
	if err := c.fits(s.LogState, schema); err != nil {
		return sdk.Collection{}, err
	}
	return sdk.Collection{Entries: s.Live, Dimension: schema.Dimension, Note: slices.Clone(s.Note)}, nil
}

// refresh reloads the state from the log.
func (c *collection) refresh(schema sdk.Schema) error {
	for try := 0; ; try++ {
		err := c.tryRefresh(schema)
		// If a writer rolls back while the file is read, the log looks damaged. That does not happen twice in a row.
		// A writer that merges removes files that the log listed a moment ago.
		var broken *segment.DamageError
		if errors.As(err, &broken) && broken.Path == c.path() && try < 1 || errors.Is(err, errMissing) && try < 5 {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		return err
	}
}

func (c *collection) tryRefresh(schema sdk.Schema) error {
	f, now, err := c.readLog()
	if err != nil {
		return err
	}
	defer f.Close() // f may be nil; then Close only returns an error
	if now.End == 0 {
		now.Schema = schema
	}
	old := c.now.Load()
	if old != nil && now.Same(old.LogState) && now.Schema == old.Schema {
		return nil
	}
	if err := c.fits(now, schema); err != nil {
		return err
	}
	empty, err := segment.EmptySnapshot(now.Schema)
	if err != nil {
		return err
	}
	next := c.version(now, empty)
	if now.End > 0 {
		if next, err = c.replay(f, now, empty); err != nil {
			return err
		}
	}
	c.now.Store(next)
	return nil
}

// readLog opens the log and finds its last commit. Without a log both are zero.
func (c *collection) readLog() (*os.File, segment.LogState, error) {
	f, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, segment.LogState{}, nil
	}
	if err != nil {
		return nil, segment.LogState{}, err
	}
	var known segment.LogState
	if s := c.now.Load(); s != nil {
		known = s.LogState
	}
	s, err := segment.InspectLog(f, known)
	if err != nil {
		f.Close()
		return nil, segment.LogState{}, err
	}
	return f, s, nil
}

// analyzerName returns the name of an analyzer without its version.
func analyzerName(kept string) string {
	name, _, _ := strings.Cut(kept, "/")
	return name
}

// fits reports an error if the collection cannot be used with the schema.
func (c *collection) fits(s segment.LogState, schema sdk.Schema) error {
	switch have := s.Schema; {
	case have.Dimension != schema.Dimension:
		return sdk.Invalid(fmt.Errorf("collection %q has vectors of %d dimensions and the embedder gives %d: build it anew, under another name or in another state folder", c.name, have.Dimension, schema.Dimension))
	case support.StoredName(have.Analyzer) != support.StoredName(schema.Analyzer): // of any version
		return sdk.Invalid(fmt.Errorf("collection %q was built with analyzer %q, not %q: build it anew, under another name or in another state folder", c.name, analyzerName(have.Analyzer), analyzerName(schema.Analyzer)))
	}
	return nil
}

// read calls do with the committed version. The version stays in memory until do returns. The result of do must not
// be part of a segment.
func read[T any](c *collection, do func(*version) (T, error)) (found T, err error) {
	s := c.now.Load()
	if s == nil {
		return found, c.notOpen()
	}
	defer runtime.KeepAlive(s)
	return do(s)
}

func (c *collection) notOpen() error {
	return sdk.Invalid(fmt.Errorf("collection %q is not open", c.name))
}

// dropped is the prefix of folders of dropped collections. No collection's folder begins with a dot.
const dropped = ".dropped-"

// List implements sdk.Store.
func (s *store) List(ctx context.Context) ([]sdk.Collection, error) {
	dir := string(s.config.Path)
	names, err := collections(dir)
	if err != nil {
		return nil, err
	}
	list := make([]sdk.Collection, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := existing(Location{dir, name})
		if errors.Is(err, os.ErrNotExist) {
			continue // not committed yet, or dropped meanwhile
		}
		if err != nil {
			s.log.Warn("a collection cannot be read", "collection", name, "error", err)
			continue
		}
		now := c.now.Load()
		list = append(list, sdk.Collection{Name: name, Entries: now.Live, Dimension: now.Schema.Dimension, Note: slices.Clone(now.Note)})
	}
	return list, nil
}

// Drop implements sdk.Store.
func (s *store) Drop(_ context.Context, name string) error {
	c := s.collection(name)
	if err := c.drop(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.collections, name)
	return nil
}

// drop first renames the collection's folder, which takes effect at once, and then removes it. Readers continue with
// the files that they have open.
func (c *collection) drop() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(true)
	}
	parent := filepath.Dir(c.dir)
	defer func() {
		left, _ := os.ReadDir(parent)
		for _, e := range left { // this one, and leftovers of killed processes
			if !strings.HasPrefix(e.Name(), dropped) {
				continue
			}
			dir := filepath.Join(parent, e.Name())
			if err := os.RemoveAll(dir); err != nil {
				c.log.Warn("could not remove a dropped collection", "folder", dir, "error", err)
			}
		}
	}()
	if _, err := os.Stat(c.dir); errors.Is(err, os.ErrNotExist) {
		c.now.Store(nil)
		return nil
	}
	lock, err := c.takeLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := support.Rename(c.dir, filepath.Join(parent, dropped+rand.Text())); err != nil {
		return err
	}
	c.now.Store(nil)
	if !c.config.Sync {
		return nil
	}
	return support.SyncFolder(parent)
}

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
	if !segment.LittleEndian() {
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
	schema.Analyzer = support.StoredName(schema.Analyzer)
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

// Close drops uncommitted changes.
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

// folder converts a collection's name into a file name. The result is unique even if the file system ignores case.
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
