package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/store/local/internal/check"
	"github.com/racflow/racflow/plugins/store/local/internal/integrity"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/wal"
	"github.com/racflow/racflow/sdk"
)

// Statistics says what a collection is made of.
type Statistics struct {
	Entries   int    `json:"entries"`   // live rows
	Removed   int    `json:"removed"`   // deleted and replaced rows that take room until segments are merged
	Dimension int    `json:"dimension"` // of the vectors; 0: none
	Analyzer  string `json:"analyzer"`  // of the lexical leg; empty: none
	Segments  int    `json:"segments"`  // in files
	Logged    int    `json:"logged"`    // entries that only the log has
	Words     int64  `json:"words"`     // of the entries' texts and contexts
	Labels    int    `json:"labels"`    // distinct ones of the entries
	Bytes     int64  `json:"bytes"`     // of all files of the collection
	Note      []byte `json:"-"`         // of the last commit
}

// Compaction says what Compact achieved.
type Compaction struct {
	Before, After int64 // bytes of all files of the collection
}

// Location is where a collection is: the folder of the store, and its name.
type Location struct{ Dir, Name string }

// String returns the collection's own folder.
func (l Location) String() string { return filepath.Join(l.Dir, folder(l.Name)) }

// Find returns the collections in and below a folder, or the one that the folder
// is, in the order of their paths. The error is fs.ErrNotExist if there is no such
// folder.
func Find(root string) (found []Location, err error) {
	// The separator makes a root that is a link its target.
	err = filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !isCollection(path) {
			return err
		}
		dir := filepath.Clean(path)
		if dir == "." { // its name is needed
			if dir, err = filepath.Abs(dir); err != nil {
				return err
			}
		}
		if name, ok := collectionName(filepath.Base(dir)); ok {
			found = append(found, Location{filepath.Dir(dir), name})
		}
		return nil
	})
	return found, err
}

// isCollection reports whether a folder has files of a collection, whole or not. A
// log alone may be one of something else.
func isCollection(dir string) bool {
	if hasSegments(dir) {
		return true
	}
	log := filepath.Join(dir, "log")
	if _, err := os.Stat(log); err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); err == nil {
		return true
	}
	f, err := os.Open(log)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = wal.ReadHeader(f)
	return err == nil
}

func hasSegments(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), segment.Suffix) })
}

// collections returns the names of the collections in a folder, sorted. A folder
// that does not exist has none.
func collections(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		name, ok := collectionName(e.Name())
		if !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "log")); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// collectionName is the inverse of folder.
func collectionName(f string) (name string, ok bool) {
	name, err := url.PathUnescape(f)
	return name, err == nil && name != "" && folder(name) == f
}

// Stats returns what a collection is made of, as of its last commit. The error is
// fs.ErrNotExist if there is no such collection.
func Stats(at Location) (Statistics, error) {
	c, err := existing(at)
	if err != nil {
		return Statistics{}, err
	}
	s := c.now.Load()
	defer runtime.KeepAlive(s)
	files := snapshot.Files(s.Parts)
	found := Statistics{
		Entries: s.Live, Removed: s.Rows - s.Live, Dimension: s.Schema.Dimension, Analyzer: s.Schema.Analyzer,
		Segments: files, Words: s.Words, Note: s.Note,
	}
	labels := map[string]bool{}
	for i := range s.Parts {
		p := &s.Parts[i]
		if i >= files {
			found.Logged += p.Live()
		}
		for r := range p.LiveRows() {
			labels[p.Label(r)] = true
		}
	}
	delete(labels, "") // of entries without one
	found.Labels = len(labels)
	found.Bytes, err = c.size()
	return found, err
}

// Export calls do with every entry of a collection, whole, in the order in which
// they were put, until it returns an error, which Export returns.
func Export(ctx context.Context, at Location, do func(sdk.Entry) error) error {
	c, err := existing(at)
	if err != nil {
		return err
	}
	s := c.now.Load()
	defer runtime.KeepAlive(s)
	if err := s.VerifyRest(); err != nil {
		return err
	}
	ask := sdk.Scan{Texts: true, Vectors: true}
	for first := true; first || ask.After != ""; first = false {
		page, err := s.Page(ask)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := errors.Join(ctx.Err(), do(e)); err != nil {
				return err
			}
		}
		ask.After = page.Next
	}
	return nil
}

// Check reads all of a collection and compares it with itself: every checksum,
// and every index with the rows. The error says what is wrong, several things
// if there are; it is fs.ErrNotExist if there is no such collection. It takes
// about as long as building the indexes anew.
func Check(ctx context.Context, at Location) error {
	c, err := existing(at)
	if err != nil {
		return err
	}
	s := c.now.Load()
	defer runtime.KeepAlive(s)
	all := check.Parts(ctx, s.Snapshot)
	if len(all) > 0 && ctx.Err() == nil {
		all = append(all, errors.New("restore the collection from a copy, or delete its folder and build the knowledge again"))
	}
	return errors.Join(all...)
}

// Compact merges all rows of a collection into one segment and removes what no
// search needs. It writes, so it fails while another process does (a transient
// error); searches continue. It needs as much free room as the entries take.
func Compact(ctx context.Context, at Location) (done Compaction, err error) {
	c, err := existing(at)
	if err != nil {
		return done, err
	}
	if done.Before, err = c.size(); err != nil {
		return done, err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := errors.Join(ctx.Err(), c.begin()); err != nil {
		return done, err
	}
	if err := c.compact(); err != nil {
		return done, c.undo(err)
	}
	c.end()
	done.After, err = c.size()
	return done, err
}

// compact does so within a transaction that changes nothing.
func (c *collection) compact() error {
	now := c.now.Load()
	defer runtime.KeepAlive(now)
	if len(now.Parts) == 1 && now.Live == now.Rows && snapshot.Files(now.Parts) == 1 && len(now.Listed) == 1 && now.End-now.Base < smallLog {
		return nil
	}
	var parts []snapshot.Part
	if now.Live > 0 {
		s, err := c.writeFile(snapshot.Inputs(now.Parts))
		if err != nil {
			return err
		}
		parts = append(parts, snapshot.Whole(s))
	}
	next, err := c.checkpoint(now.State, now.With(parts))
	if err == nil {
		c.now.Store(next)
		c.sweep()
	}
	return err
}

// existing opens a collection as it is.
func existing(at Location) (*collection, error) {
	c := &collection{
		name: at.Name, dir: at.String(), config: config{K1: 1.2, B: 0.75, Sync: true},
		limits: defaultLimits(), log: slog.New(slog.DiscardHandler),
	}
	f, now, err := c.look()
	f.Close() // of nil: an error that does not matter
	if err == nil && now.End == 0 {
		err = c.absent()
	}
	if err == nil {
		err = c.refresh(now.Schema)
	}
	return c, err
}

// absent is the error for a collection without a commit: fs.ErrNotExist, unless
// it had one, for only rows that were committed are in files and not in the log.
func (c *collection) absent() error {
	if hasSegments(c.dir) {
		if _, err := os.Stat(c.path()); errors.Is(err, fs.ErrNotExist) {
			return integrity.Damage(c.path(), 0, "it is not there although segments are")
		}
	}
	return fmt.Errorf("nothing was committed to collection %q in %s: %w", c.name, filepath.Dir(c.dir), fs.ErrNotExist)
}

// size returns the bytes of all files of a collection.
func (c *collection) size() (bytes int64, err error) {
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // a writer may have removed it
			bytes += info.Size()
		}
	}
	return bytes, err
}
