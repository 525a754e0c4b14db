package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/sealed"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk/support"
)

// File is the one of the answers. Who works on a run holds its lock.
const File = "journal.jsonl"

// The files of a run's folder, beside the manifest.
const (
	journalFile     = File
	failuresFile    = "failures.jsonl"
	provisionalFile = "provisional.jsonl"
	totalsFile      = "totals.json"
)

// Journal is a run's folder that is open. It implements run.Journal.
type Journal struct {
	Manifest manifest.Manifest
	// Changed is how many lines were changed after they were written, so that their items
	// count as not reached.
	Changed int

	dir     string
	options Options

	mu      sync.Mutex
	shelves kinds // the first one, of answers, holds the lock
	earlier int   // items that were known when it was opened
	buffer  []byte
}

func (j *Journal) disk() disk {
	if j.options.disk != nil {
		return j.options.disk
	}
	return system{}
}

// Create begins a run in a folder that was just made.
func Create(dir string, m manifest.Manifest, o Options) (*Journal, error) {
	j := &Journal{Manifest: m, dir: dir, options: o}
	err := j.locked(support.OpenLock(filepath.Join(j.dir, journalFile), os.O_RDWR|os.O_CREATE, private.FileMode))
	if err == nil {
		err = m.Write(dir, o.Sync.Forces())
	}
	if err == nil && o.Sync.Forces() { // the names of the folder, and of those above that may be new
		err = errors.Join(j.disk().syncFolder(dir), j.disk().syncFolder(filepath.Dir(dir)), j.disk().syncFolder(filepath.Dir(filepath.Dir(dir))))
	}
	if err != nil {
		return nil, errors.Join(err, j.shelves[Answered].close())
	}
	return j, nil
}

// locked takes the journal, which is open and locked, or says why it is not.
func (j *Journal) locked(f *os.File, err error) error {
	if errors.Is(err, support.ErrBusy) {
		return fmt.Errorf("run %s is being worked on by another process: wait until it is done", j.Manifest.ID)
	}
	if err == nil {
		j.shelves[Answered].file = j.disk().locked(f)
	}
	return err
}

// Resume opens a run to resume it. The folder is that of the run from then on, and no
// longer says how it ended before. An incomplete last line is dropped.
func Resume(dir string, o Options) (*Journal, error) {
	j, err := open(dir, o, func(path string) (*os.File, error) { return support.OpenLock(path, os.O_RDWR, private.FileMode) })
	if err != nil {
		return nil, err
	}
	if err = j.shelves[Answered].file.Truncate(j.shelves[Answered].size); err != nil {
		return nil, errors.Join(fmt.Errorf("resume run %s: %w", j.ID(), err), j.Close(nil))
	}
	for _, status := range []Status{Provisional, Failed} { // their items are asked again
		err = errors.Join(err, j.shelves[status].close())
		j.shelves[status] = shelf{}
	}
	for _, file := range []string{totalsFile, failuresFile, provisionalFile} {
		if e := os.Remove(filepath.Join(j.dir, file)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resume run %s: %w", j.ID(), err), j.shelves[Answered].close())
	}
	return j, nil
}

// Open opens a run so that its results can be read. Nothing of it changes, and nobody
// works on it until Close; others may read it.
func Open(dir string) (*Journal, error) {
	return open(dir, Options{}, func(path string) (*os.File, error) { return support.OpenSharedLock(path, os.O_RDWR) })
}

func open(dir string, o Options, locked func(path string) (*os.File, error)) (*Journal, error) {
	m, err := manifest.Read(dir)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", filepath.Base(dir), err)
	}
	j := &Journal{Manifest: m, dir: dir, options: o}
	if err := j.locked(locked(filepath.Join(dir, journalFile))); err != nil {
		return nil, err
	}
	if err := j.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("read run %s: %w", m.ID, err), j.Close(nil))
	}
	return j, nil
}

// ID names the run.
func (j *Journal) ID() string { return j.Manifest.ID }

// Folder is where the run is kept.
func (j *Journal) Folder() string { return j.dir }

// Known is how many items an earlier part of the run has answered.
func (j *Journal) Known() int { return j.earlier }

// Index makes Answered and Results return what this part of the run keeps, too. It is to be
// called before anything is kept.
func (j *Journal) Index() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.shelves {
		if j.shelves[i].known == nil {
			j.shelves[i].known = map[int]span{}
		}
	}
}

// Answered implements run.Journal.
func (j *Journal) Answered(row source.Row) (outcome.Result, bool) {
	if e := j.entry(Answered, row); e != nil {
		return e.result(), true
	}
	return outcome.Result{}, false
}

// entry is what the journal has of a row that has come to a status; nil: nothing.
func (j *Journal) entry(status Status, row source.Row) *entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.shelves[status].entry(row.Line, j.Manifest.Format)
	if e == nil || e.ID != nameOf(row) || (e.Answer == nil) != (status == Failed) {
		return nil // then it is answered again
	}
	return e
}

// nameOf is the id that a row's result has. The journal keeps it as JSON does,
// in valid UTF-8.
func nameOf(row source.Row) string {
	if row.ID == "" {
		return strconv.Itoa(row.Line)
	}
	return string([]rune(row.ID))
}

// Keep implements run.Journal: Options.Sync says what it has done when it returns.
func (j *Journal) Keep(results []outcome.Result) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	step := len(results)
	if j.options.Sync == SyncItem {
		step = 1
	}
	for from := 0; from < len(results) && err == nil; from += step {
		err = j.keep(results[from : from+step])
	}
	if err != nil {
		return fmt.Errorf("journal of the run: %w; free some space, or run without Options.Journal", err)
	}
	return nil
}

func (j *Journal) keep(results []outcome.Result) (err error) {
	var drafts [Failed + 1]draft
	drafts[Answered].text = j.buffer[:0]
	for i := range results {
		status := of(&results[i])
		d := &drafts[status]
		from := len(d.text)
		var infinite *json.UnsupportedValueError
		if d.text, err = appendEntry(d.text, &results[i], j.options.Keep); err != nil && !errors.As(err, &infinite) {
			return err // a number that is not finite is no answer: a resumed run asks again
		}
		if j.shelves[status].known != nil && len(d.text) > from {
			d.add(results[i].Line, from)
		}
	}
	j.buffer = drafts[Answered].text
	return j.add(&drafts)
}

// Close ends the work, with how the run ended.
func (j *Journal) Close(end *Totals) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if end != nil {
		var text []byte
		if text, err = json.MarshalIndent(end, "", "  "); err == nil {
			err = private.WriteFile(filepath.Join(j.dir, totalsFile), sealed.File(text), j.options.Sync.Forces())
		}
	}
	for i := len(j.shelves) - 1; i >= 0; i-- { // the lock last
		err = errors.Join(err, j.shelves[i].close())
	}
	return err
}
