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
	waits    func(Wait)
	mu       sync.Mutex
	work     map[string]*work  // by the key of a row; nil: not read yet
	reported map[string]report // the last one, by stage and handle
}

// Wait is what is waited for.
type Wait struct {
	Stage string // as "sample.mine"
	Note  string // how far its service is, in the stage's own words; empty: it does not say
	For   time.Duration
}

// report is when something was reported, and what.
type report struct {
	at   time.Time
	note string
}

// work is what a handle names. It is never changed: what has fewer rows is another one.
type work struct {
	Handle string    `json:"handle"`
	Since  time.Time `json:"since"`
	Rows   []string  `json:"rows"` // their keys, sorted
	file   string
}

// NewBook returns the book in a folder, which need not exist. waits is called now and then
// while results are waited for: at once and when there is news where the stage says how far its service is;
// nil: nobody wants to know.
func NewBook(dir string, waits func(Wait)) *Book {
	return &Book{dir: dir, waits: waits, reported: map[string]report{}}
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

const (
	// notice is how often a wait is reported at most.
	notice = 30 * time.Second
	// seldom is how often it is where a stage says the same again.
	seldom = 10 * time.Minute
)

// report calls waits, unless it was called for the same a moment ago.
func (b *Book) report(w Wait, handle string) {
	b.mu.Lock()
	key := w.Stage
	if w.Note != "" { // of one of the stage's works
		key += " " + handle
	}
	last := b.reported[key]
	quiet := b.waits == nil || time.Since(last.at) < notice || w.Note != "" && w.Note == last.note && time.Since(last.at) < seldom
	if !quiet {
		b.reported[key] = report{time.Now(), w.Note}
	}
	b.mu.Unlock()
	if !quiet {
		b.waits(w)
	}
}
