package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/sdk"
)

// begin starts a transaction unless one is under way: it takes the lock, makes
// sure that nobody else wrote since this process read, and cuts off what a
// killed writer left behind.
func (c *collection) begin() (err error) {
	if c.staged != nil {
		return nil
	}
	known := c.now.Load()
	if known == nil {
		return c.notOpen()
	}
	if c.dropped {
		return fmt.Errorf("collection %q lost its uncommitted changes to an earlier error: open it again and make them anew", c.name)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return explain(err)
	}
	lock, err := c.takeLock()
	if err != nil {
		return explain(err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	f, now, err := c.look()
	if err != nil {
		return err
	}
	f.Close() // of nil: an error that does not matter
	if !now.same(known.state) {
		return sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", c.name), 0)
	}
	c.sweep()
	a, err := c.openLog(known)
	if err != nil {
		return fmt.Errorf("write collection %q: %w", c.name, explain(err))
	}
	c.staged = &transaction{
		lock: lock, log: a, start: a.end, next: known.next, schema: known.schema,
		spilt: newRemover(nil, known.analyzer), gone: map[string]struct{}{},
	}
	c.busy.Store(true)
	return nil
}

// openLog opens the log at the end of its last commit, or makes a new one.
func (c *collection) openLog(known *snapshot) (*appender, error) {
	if known.end > 0 {
		f, err := os.OpenFile(c.path(), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err := f.Truncate(known.end); err != nil {
			f.Close()
			return nil, err
		}
		return &appender{f: f, id: known.id, sync: c.config.Sync, end: known.end}, nil
	}
	a, err := createLog(c.path()+".new", known.schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	if err := a.rename(c.path()); err != nil {
		a.f.Close()
		return nil, err
	}
	if c.config.Sync {
		if err := syncDir(filepath.Dir(c.dir)); err != nil {
			a.f.Close()
			return nil, err
		}
	}
	return a, nil
}
