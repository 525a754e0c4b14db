package local

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/store/local/internal/wal"
	"github.com/racflow/racflow/sdk"
)

// dropped begins the name of a folder whose collection was dropped. No
// collection's folder begins with a dot.
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
			continue // nothing was committed, or it was dropped meanwhile
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

// drop moves the collection out of the way, which is done at once, and then
// removes it. Who reads it continues with the files that it has open.
func (c *collection) drop() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.staged != nil {
		c.rollback(true)
	}
	parent := filepath.Dir(c.dir)
	defer func() {
		left, _ := os.ReadDir(parent)
		for _, e := range left { // ours, and those of who was killed before
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
	if err := os.Rename(c.dir, filepath.Join(parent, dropped+rand.Text())); err != nil {
		return err
	}
	c.now.Store(nil)
	if !c.config.Sync {
		return nil
	}
	return wal.SyncDir(parent)
}
