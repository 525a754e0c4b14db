package pending

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/private"
)

// Book keeps handles. Its methods may be called by several goroutines at once; several
// processes may have one of the same folder.
type Book struct {
	dir      string
	overdue  func(stage string, waited time.Duration)
	mu       sync.Mutex
	work     map[string]*work     // by the key of a row; nil: not read yet
	reported map[string]time.Time // when overdue was called for a stage last
}

// work is what a handle names. It is never changed: what has fewer rows is another one.
type work struct {
	Handle string    `json:"handle"`
	Since  time.Time `json:"since"`
	Rows   []string  `json:"rows"` // their keys, sorted
	file   string
}

// NewBook returns the book in a folder, which need not exist. overdue is called with a
// stage, as "sample.mine", whose results have been waited for, now and then; nil: nobody
// wants to know.
func NewBook(dir string, overdue func(stage string, waited time.Duration)) *Book {
	return &Book{dir: dir, overdue: overdue, reported: map[string]time.Time{}}
}

// Key identifies a row of a stage by all that its results depend on.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// read reads the folder once. The caller holds mu.
func (b *Book) read() error {
	if b.work != nil {
		return nil
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	found := map[string]*work{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		w := &work{file: filepath.Join(b.dir, e.Name())}
		raw, err := os.ReadFile(w.file)
		if errors.Is(err, fs.ErrNotExist) { // another process has its results
			continue
		}
		if err == nil {
			err = json.Unmarshal(raw, w)
		}
		if err != nil {
			return fmt.Errorf("%s is damaged; remove it, and its rows are asked for again: %w", w.file, err)
		}
		for _, key := range w.Rows {
			if old := found[key]; old == nil || old.Since.Before(w.Since) {
				found[key] = w
			}
		}
	}
	b.work = found
	return nil
}

// handle returns the handle of a row and since when there is work on it; empty: none.
func (b *Book) handle(key string) (handle string, since time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return "", time.Time{}, err
	}
	if w := b.work[key]; w != nil {
		return w.Handle, w.Since, nil
	}
	return "", time.Time{}, nil
}

// keep keeps the handle of rows, in the place of one that they had. It is on the disk
// when keep returns.
func (b *Book) keep(keys []string, handle string, since time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(key string) bool { return b.work[key] == nil || b.work[key].Handle != handle }) {
		return nil
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	w := &work{Handle: handle, Since: since, Rows: keys, file: filepath.Join(b.dir, Key(append(keys, handle)...)+".json")}
	if err := w.write(); err != nil {
		return err
	}
	if err := b.remove(keys); err != nil {
		return err
	}
	for _, key := range keys {
		b.work[key] = w
	}
	return nil
}

// Settle removes the entries of rows: their results are stored.
func (b *Book) Settle(keys []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.work == nil || len(keys) == 0 {
		return nil
	}
	return b.remove(keys)
}

// remove removes entries. The caller holds mu.
func (b *Book) remove(keys []string) error {
	gone := map[*work]bool{}
	for _, key := range keys {
		if w := b.work[key]; w != nil {
			gone[w] = true
			delete(b.work, key)
		}
	}
	for w := range maps.Keys(gone) {
		rest := *w
		rest.Rows = slices.DeleteFunc(slices.Clone(w.Rows), func(key string) bool { return b.work[key] != w })
		if len(rest.Rows) == 0 {
			if err := os.Remove(w.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := rest.write(); err != nil {
			return err
		}
		for _, key := range rest.Rows {
			b.work[key] = &rest
		}
	}
	return nil
}

// write forces the work to the disk, in the place of what its file was.
func (w *work) write() error {
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := private.MakeFolder(filepath.Dir(w.file)); err != nil {
		return err
	}
	return private.WriteFile(w.file, raw, true)
}

// notice is how often a stage is reported that has results pending.
const notice = 30 * time.Second

// report calls overdue, unless it was called for the stage a moment ago.
func (b *Book) report(stage string, waited time.Duration) {
	b.mu.Lock()
	quiet := b.overdue == nil || time.Since(b.reported[stage]) < notice
	if !quiet {
		b.reported[stage] = time.Now()
	}
	b.mu.Unlock()
	if !quiet {
		b.overdue(stage, waited)
	}
}
