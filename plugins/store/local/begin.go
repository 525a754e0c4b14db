package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/lock"
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
	if !now.Same(known.State) {
		return sdk.Transient(fmt.Errorf("collection %q was changed by another process since it was opened: open it again", c.name), 0)
	}
	c.sweep()
	a, err := c.openLog(known)
	if err != nil {
		return fmt.Errorf("write collection %q: %w", c.name, explain(err))
	}
	c.staged = &transaction{
		Staged: snapshot.NewStaged(nil, known.Analyzer), gone: map[string]struct{}{},
		lock: lock, log: a, start: a.End, next: known.Next, dimension: known.Dimension,
	}
	c.busy.Store(true)
	return nil
}

// openLog opens the log at the end of its last commit, or makes a new one.
func (c *collection) openLog(known *version) (*wal.Appender, error) {
	if known.End > 0 {
		f, err := os.OpenFile(c.path(), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		if err := f.Truncate(known.End); err != nil {
			f.Close()
			return nil, err
		}
		return &wal.Appender{F: f, ID: known.ID, Sync: c.config.Sync, End: known.End}, nil
	}
	a, err := wal.Create(c.path()+".new", known.Schema, c.config.Sync)
	if err != nil {
		return nil, err
	}
	if err := a.Rename(c.path()); err != nil {
		a.F.Close()
		return nil, err
	}
	if c.config.Sync {
		if err := wal.SyncDir(filepath.Dir(c.dir)); err != nil {
			a.F.Close()
			return nil, err
		}
	}
	return a, nil
}

// takeLock makes this process the collection's only writer until it closes the
// file, or ends.
func (c *collection) takeLock() (*os.File, error) {
	path := filepath.Join(c.dir, "lock")
	f, err := lock.Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, lock.ErrBusy) {
		holder, _ := os.ReadFile(path)
		err = sdk.Transient(fmt.Errorf("collection %q is being written by process %s: wait until it is done", c.name, strings.TrimSpace(string(holder))), time.Second)
	}
	if err != nil {
		return nil, err
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
