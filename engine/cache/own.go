package cache

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/private"
)

// takeFile finds a file to write: one that nobody writes, or a new one.
func (c *Cache) takeFile() error {
	if err := private.MakeFolder(c.dir); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.look(); err != nil {
		return err
	}
	for {
		for _, name := range slices.Sorted(maps.Keys(c.files)) {
			path := c.files[name].path
			if ok, err := c.take(name); err != nil {
				c.report(path, err)
			} else if ok {
				return nil
			}
		}
		// Who else looks for a file may take the new one: then there is another.
		if ok, err := c.takeNew(); err != nil || ok {
			return err
		}
	}
}

// takeNew makes a file and takes it. Where that fails, as on a full disk, the file
// is removed: every later response would leave another one.
func (c *Cache) takeNew() (bool, error) {
	name := c.layout.newName()
	path := filepath.Join(c.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private.FileMode)
	if err != nil {
		return false, err
	}
	if err = f.Close(); err == nil {
		err = c.follow(name)
	}
	ok := false
	if err == nil {
		ok, err = c.take(name)
	}
	if err != nil {
		_ = os.Remove(path) // take has mostly done so
	}
	return ok, err
}

// take makes a file the one that this process writes. It reports false where
// another process writes it, or it is gone, or damaged.
func (c *Cache) take(name string) (bool, error) {
	f := c.files[name]
	if f == nil || c.segment > 0 && f.known >= c.segment {
		return false, nil // it was cleared in between, or is full
	}
	ok, err := f.take(c.adder(f))
	switch {
	case ok:
		c.own = f
	case err != nil && f.known == 0 && !f.broken: // nothing stands in it, so nobody misses it
		delete(c.files, name)
		err = errors.Join(err, f.close())
	}
	return ok, err
}
