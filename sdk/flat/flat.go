package flat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Suffix ends all names that a Place gets. The rest of a name consists of hexadecimal digits.
const Suffix = ".flat"

// Place keeps contents by name. Several goroutines may call its methods at once.
type Place interface {
	// Load returns a content. The error is fs.ErrNotExist if no content has that name.
	Load(ctx context.Context, name string) ([]byte, error)
	// Save replaces the content of that name, completely or not at all.
	Save(ctx context.Context, name string, content []byte) error
	// Remove removes a content. The error may be fs.ErrNotExist if no content has that name.
	Remove(ctx context.Context, name string) error
	// Names lists the names of all contents, in any order. It may list foreign contents, too, whose
	// names do not end with Suffix.
	Names(ctx context.Context) ([]string, error)
}

// New makes a store from a place. Its stage declares sdk.Filters.
func New(place Place) sdk.Store { return &store{place: place, open: map[string]*collection{}} }

type store struct {
	place Place
	mu    sync.RWMutex
	open  map[string]*collection
}

// collection is an open collection. Readers use now; a commit replaces it as a whole.
type collection struct {
	sync.RWMutex
	now     *version
	pending map[string]*sdk.Entry // by id; nil: deleted
}

func (c *collection) version() *version {
	c.RLock()
	defer c.RUnlock()
	return c.now
}

// file returns the name of a collection's content. The name of a collection may be any string.
func file(collection string) string {
	sum := sha256.Sum256([]byte(collection))
	return hex.EncodeToString(sum[:16]) + Suffix
}

func (s *store) opened(name string) (*collection, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.open[name]; c != nil {
		return c, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("the collection %q is not open: open it first", name))
}

// load reads a content; it returns nil if there is none.
func (s *store) load(ctx context.Context, name string) (*version, error) {
	content, err := s.place.Load(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return decode(content)
}

// Open implements sdk.Store.
func (s *store) Open(ctx context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	if name == "" || schema.Dimension < 1 {
		return sdk.Collection{}, sdk.Invalid(errors.New("a collection has a name, and vectors of at least one dimension"))
	}
	if schema.Analyzer != "" {
		if _, err := support.NamedAnalyzer(schema.Analyzer); err != nil {
			return sdk.Collection{}, sdk.Invalid(err)
		}
	}
	v, err := s.load(ctx, file(name))
	if err != nil {
		return sdk.Collection{}, fmt.Errorf("read the collection %q: %w", name, err)
	}
	if v == nil {
		v = (&content{Name: name, Schema: schema}).version()
	}
	if v.Schema != schema {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("the collection %q was made for %d dimensions and analyzer %q, not for %d and %q",
			name, v.Schema.Dimension, v.Schema.Analyzer, schema.Dimension, schema.Analyzer))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.open[name]; c != nil {
		c.Lock()
		defer c.Unlock()
		c.now, c.pending = v, nil
	} else {
		s.open[name] = &collection{now: v}
	}
	return v.state(), nil
}

// change records changes of a collection for the next Commit.
func (s *store) change(name string, note func(c *collection) error) error {
	c, err := s.opened(name)
	if err != nil {
		return err
	}
	c.Lock()
	defer c.Unlock()
	if c.pending == nil {
		c.pending = map[string]*sdk.Entry{}
	}
	return note(c)
}

// Put implements sdk.Store.
func (s *store) Put(ctx context.Context, name string, entries []sdk.Entry) error {
	return s.change(name, func(c *collection) error {
		for i, e := range entries {
			switch {
			case e.ID == "":
				return sdk.Invalid(fmt.Errorf("entry %d has no id", i))
			case len(e.Vector) != c.now.Schema.Dimension:
				return sdk.Invalid(fmt.Errorf("entry %q has a vector of %d dimensions, not of %d", e.ID, len(e.Vector), c.now.Schema.Dimension))
			case !finite(e.Vector):
				return sdk.Invalid(fmt.Errorf("entry %q has a vector with a number that is not finite", e.ID))
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range entries {
			e := entries[i]
			c.pending[e.ID] = &e
		}
		return nil
	})
}

func finite(vector []float32) bool {
	return !slices.ContainsFunc(vector, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) })
}

// Delete implements sdk.Store.
func (s *store) Delete(_ context.Context, name string, ids []string) error {
	return s.change(name, func(c *collection) error {
		for _, id := range ids {
			c.pending[id] = nil
		}
		return nil
	})
}

// Commit implements sdk.Store.
func (s *store) Commit(ctx context.Context, name string, note []byte) error {
	return s.change(name, func(c *collection) error {
		there, err := s.load(ctx, file(name))
		if err != nil {
			return fmt.Errorf("read the collection %q: %w", name, err)
		}
		if there.hash() != c.now.sum {
			return sdk.Transient(fmt.Errorf("another process has changed the collection %q since it was opened: open it again", name), 0)
		}
		next, content, err := c.now.with(c.pending, note)
		if err == nil {
			err = s.place.Save(ctx, file(name), content)
		}
		if err != nil {
			return fmt.Errorf("write the collection %q: %w", name, err)
		}
		c.now, c.pending = next, nil
		return nil
	})
}

// List implements sdk.Store.
func (s *store) List(ctx context.Context) ([]sdk.Collection, error) {
	names, err := s.place.Names(ctx)
	if err != nil {
		return nil, err
	}
	var all []sdk.Collection
	for _, name := range names {
		if !strings.HasSuffix(name, Suffix) {
			continue
		}
		if v, err := s.load(ctx, name); err == nil && v != nil { // leave out a collection that cannot be read
			all = append(all, v.state())
		}
	}
	slices.SortFunc(all, func(a, b sdk.Collection) int { return strings.Compare(a.Name, b.Name) })
	return all, ctx.Err()
}

// Drop implements sdk.Store.
func (s *store) Drop(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.place.Remove(ctx, file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop the collection %q: %w", name, err)
	}
	delete(s.open, name)
	return nil
}
