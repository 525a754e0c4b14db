package retry

import (
	"context"
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

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file waits for results that a service makes in minutes or hours (sdk.Pending), and stores the
// handles of such work.
//
// Handles is a folder with a file for each handle: the handle, and the keys of its rows. The file is
// on the disk before anything waits. A key is a digest of the stage (package pipeline) and of
// everything that the stage sees of the row, its id included. So a later attempt on the same row (a
// resumed run, another build or a new run) collects with the handle and requests nothing a second
// time.
//
// PendingWork wraps the calls of a stage, inside their retries. It groups rows by handle, requests
// the rows without a handle, waits as long as the stage says, and collects, until the results are
// there. A call's timeout and slot are only for the call; the wait ends with the context or the
// stage.
//
// Handles reports the waiting time now and then. It reports the progress that a stage reports of its
// service (sdk.Pending.Note) at once, and when it changes.
//
// An entry is removed once the results of its row are stored (Settle), so that a kill between the two
// costs nothing: a run stores with each item what was collected for it, and settles that again when
// it is resumed. If the collection of a row fails for good (sdk.CodeInvalid), its entry is removed,
// too: the next attempt requests the row anew. An entry that nobody settles is removed in the end
// (forgotten).
//
// The package does not know what rows are, and redacts nothing: package host refuses a handle that
// holds a secret.

// Handles stores handles in a folder. Its methods may be called by several goroutines at once, and
// several processes may open the same folder.
type Handles struct {
	dir      string
	waits    func(PendingWait)
	mu       sync.Mutex
	work     map[string]*work  // by row key; nil: not read yet
	reported map[string]report // last report, by stage and handle
}

// PendingWait describes a wait.
type PendingWait struct {
	Stage string // as "sample.mine"
	Note  string // the service's progress, in the stage's own words; empty: it reports none
	For   time.Duration
}

// report is the time and the note of a report.
type report struct {
	at   time.Time
	note string
}

// work is the content of a handle's file. It is immutable: removing rows makes a new one.
type work struct {
	Handle string    `json:"handle"`
	Since  time.Time `json:"since"`
	Rows   []string  `json:"rows"` // row keys, sorted
	file   string
}

// forgotten is the age at which a handle is removed: no service keeps results for as long.
const forgotten = 90 * 24 * time.Hour

// OpenHandles opens a folder, which need not exist. It calls waits now and then while results are
// awaited. For a stage that reports its service's progress, it also calls waits at once and when
// there is news. nil: no reports.
func OpenHandles(dir string, waits func(PendingWait)) *Handles {
	return &Handles{dir: dir, waits: waits, reported: map[string]report{}}
}

// HandleKey identifies a row of a stage by everything that its results depend on.
func HandleKey(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// read reads the folder once. The caller holds mu.
func (b *Handles) read() error {
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
		if errors.Is(err, fs.ErrNotExist) { // another process has collected its results
			continue
		}
		if err == nil {
			err = json.Unmarshal(raw, w)
		}
		if err != nil {
			return fmt.Errorf("%s is damaged; remove it, and its rows are asked for again: %w", w.file, err)
		}
		if time.Since(w.Since) > forgotten {
			_ = os.Remove(w.file) // it stays unused
			continue
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

// handle returns the handle of a row and the start of its work; empty: none.
func (b *Handles) handle(key string) (handle string, since time.Time, err error) {
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

// keep stores the handle of rows, replacing earlier ones. It is on the disk when keep returns.
func (b *Handles) keep(keys []string, handle string, since time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(key string) bool { return b.work[key] == nil || b.work[key].Handle != handle }) {
		return nil
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	w := &work{Handle: handle, Since: since, Rows: keys, file: filepath.Join(b.dir, HandleKey(append(keys, handle)...)+".json")}
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

// Settle removes the entries that PendingWork.Collected received, in this process or an earlier one:
// their results are stored. An entry with another handle stays: the row was requested again since.
func (b *Handles) Settle(collected []string) error {
	if len(collected) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return err
	}
	var keys []string
	for _, one := range collected {
		key, digest, _ := strings.Cut(one, ".")
		if w := b.work[key]; w != nil && HandleKey(w.Handle) == digest {
			keys = append(keys, key)
		}
	}
	return b.remove(keys)
}

// remove removes entries. The caller holds mu.
func (b *Handles) remove(keys []string) error {
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

// write replaces the file, and forces it to the disk.
func (w *work) write() error {
	raw, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := disk.MakeFolder(filepath.Dir(w.file)); err != nil {
		return err
	}
	return disk.WriteFile(w.file, raw, true)
}

const (
	// notice is the shortest time between two reports of a wait.
	notice = 30 * time.Second
	// seldom replaces notice while a stage reports the same progress.
	seldom = 10 * time.Minute
)

// report calls waits, unless a report for the same work is recent.
func (b *Handles) report(w PendingWait, handle string) {
	b.mu.Lock()
	key := w.Stage
	if w.Note != "" { // for one handle of the stage
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

// PendingWork is a stage's work on a batch whose results may come later.
type PendingWork struct {
	Handles *Handles // nil: results that come later are an error
	Stage   string   // as "sample.mine"
	// Key identifies a row of the batch; see HandleKey.
	Key func(row int) string
	// Call asks the stage about some rows of the batch or, with a handle, collects their results. It
	// returns errors like Work.Call.
	Call func(ctx context.Context, handle string, rows []int) error
	// Collected gets each stored row whose results are there, and what to Settle once these are
	// stored.
	Collected func(row int, what string)
	// Ended is closed when all waits must end; Cause says why. Both may be nil.
	Ended <-chan struct{}
	Cause func() error
}

// Do returns when the results for these rows of the batch are there, or with an error as Call does.
func (w PendingWork) Do(ctx context.Context, rows []int) error {
	if w.Handles == nil {
		err := w.Call(ctx, "", rows)
		if later := new(sdk.Pending); errors.As(err, &later) {
			err = &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("%w, and they are not waited for here", err)}
		}
		return err
	}
	groups, err := w.divide(rows)
	if err != nil {
		return unkept(err)
	}
	if len(groups) == 1 {
		return groups[0].do(ctx)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	failed := sdk.RowErrors{}
	for _, g := range groups {
		all.Go(func() {
			apart := Work{Call: func(ctx context.Context, at []int) error { return w.Do(ctx, pick(g.rows, at)) }}
			for i, err := range apart.Do(ctx, len(g.rows)) {
				if err != nil {
					mu.Lock()
					failed[g.at[i]] = err
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if len(failed) == 0 {
		return nil
	}
	return failed
}

func unkept(err error) error {
	return &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("keep the handle of results that come later: %w", err)}
}

func pick(rows, at []int) []int {
	some := make([]int, len(at))
	for i, n := range at {
		some[i] = rows[n]
	}
	return some
}

// group holds the rows that share a handle, or have none.
type group struct {
	PendingWork
	handle string
	since  time.Time
	rows   []int
	at     []int // their positions among the rows of Do
	keys   []string
}

func (w PendingWork) divide(rows []int) ([]*group, error) {
	var groups []*group
	by := map[string]*group{}
	for at, row := range rows {
		key := w.Key(row)
		handle, since, err := w.Handles.handle(key)
		if err != nil {
			return nil, err
		}
		g := by[handle]
		if g == nil {
			g = &group{PendingWork: w, handle: handle, since: since}
			by[handle], groups = g, append(groups, g)
		}
		g.rows, g.at, g.keys = append(g.rows, row), append(g.at, at), append(g.keys, key)
	}
	return groups, nil
}

// pendingPauses apply to a stage that does not say how long to wait.
var pendingPauses = support.Backoff{First: 2 * time.Second, Max: time.Minute}

// do asks or collects, and then waits and collects until the results are there.
func (g *group) do(ctx context.Context) error {
	for polls := 1; ; polls++ {
		err := g.Call(ctx, g.handle, g.rows)
		later := new(sdk.Pending)
		if !errors.As(err, &later) {
			return g.collected(err)
		}
		if g.since.IsZero() {
			g.since = time.Now()
		}
		if err := g.Handles.keep(g.keys, later.Handle, g.since); err != nil {
			return unkept(err)
		}
		g.handle = later.Handle
		if later.Note != "" {
			g.Handles.report(PendingWait{g.Stage, later.Note, time.Since(g.since)}, later.Handle)
		}
		pause := later.PollAfter
		if pause == 0 {
			pause = pendingPauses.Delay(polls)
		}
		if err := g.wait(ctx, pause, later.Note); err != nil {
			return err
		}
	}
}

// collected removes entries of rows that failed for good, and calls Collected for the finished
// ones.
func (g *group) collected(err error) error {
	if g.handle == "" {
		return err
	}
	var rows sdk.RowErrors
	if err != nil && !errors.As(err, &rows) {
		if !final(err) {
			return err
		}
		rows = sdk.RowErrors{} // the error concerns the whole work, and halves would fail, too
		for i := range g.rows {
			rows[i] = err
		}
		err = rows
	}
	var lost []string
	digest := HandleKey(g.handle)
	for i, key := range g.keys {
		what := key + "." + digest
		switch {
		case rows[i] == nil, sdk.CodeOf(rows[i]) == sdk.CodeRefused: // no service would answer the row
			g.Collected(g.rows[i], what)
		case final(rows[i]):
			lost = append(lost, what)
		}
	}
	if failed := g.Handles.Settle(lost); failed != nil {
		return unkept(failed)
	}
	return err
}

// final reports whether every later collection would meet the same error.
func final(err error) bool {
	code := sdk.CodeOf(err)
	return err != nil && (code == sdk.CodeInvalid || code == sdk.CodeRefused)
}

// wait waits for a pause, unless the context or the stage ends before.
func (g *group) wait(ctx context.Context, pause time.Duration, note string) error {
	for end := time.Now().Add(pause); ; {
		t := time.NewTimer(min(time.Until(end), notice))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-g.Ended:
			t.Stop()
			return g.Cause()
		}
		if waited := time.Since(g.since); waited >= notice {
			g.Handles.report(PendingWait{g.Stage, note, waited}, g.handle)
		}
		if !time.Now().Before(end) {
			return nil
		}
	}
}
