package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// File is the name of the file of answers. Whoever works on a run holds its lock.
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
	Manifest Manifest
	// Changed is how many lines were changed after they were written, so that their items
	// count as not reached.
	Changed int

	dir     string
	options Options

	mu      sync.Mutex
	files   files // the first one, of answers, holds the lock
	earlier int   // items that were known when it was opened
	buffer  []byte
}

func (j *Journal) disk() syncedDisk {
	if j.options.disk != nil {
		return j.options.disk
	}
	return system{}
}

// Create begins a run in a folder that was just made.
func Create(dir string, m Manifest, o Options) (*Journal, error) {
	j := &Journal{Manifest: m, dir: dir, options: o}
	err := j.locked(support.OpenLock(filepath.Join(j.dir, journalFile), os.O_RDWR|os.O_CREATE, disk.FileMode))
	if err == nil {
		err = m.Write(dir, o.Sync.Forces())
	}
	if err == nil && o.Sync.Forces() { // the names of the folder, and of those above that may be new
		err = errors.Join(j.disk().syncFolder(dir), j.disk().syncFolder(filepath.Dir(dir)), j.disk().syncFolder(filepath.Dir(filepath.Dir(dir))))
	}
	if err != nil {
		return nil, errors.Join(err, j.files[Answered].close())
	}
	return j, nil
}

// locked takes the journal, which is open and locked, or says why it is not.
func (j *Journal) locked(f *os.File, err error) error {
	if errors.Is(err, support.ErrBusy) {
		return fmt.Errorf("run %s is being worked on by another process: wait until it is done", j.Manifest.ID)
	}
	if err == nil {
		j.files[Answered].file = j.disk().locked(f)
	}
	return err
}

// Resume opens a run to go on with it. It removes what the folder says of how the run ended
// before, and an incomplete last line.
func Resume(dir string, o Options) (*Journal, error) {
	j, err := open(dir, o, func(path string) (*os.File, error) { return support.OpenLock(path, os.O_RDWR, disk.FileMode) })
	if err != nil {
		return nil, err
	}
	if err = j.files[Answered].file.Truncate(j.files[Answered].size); err != nil {
		return nil, errors.Join(fmt.Errorf("resume run %s: %w", j.ID(), err), j.Close(nil))
	}
	for _, status := range []Status{Provisional, Failed} { // their items are asked again
		err = errors.Join(err, j.files[status].close())
		j.files[status] = lineFile{}
	}
	for _, file := range []string{totalsFile, failuresFile, provisionalFile} {
		if e := os.Remove(filepath.Join(j.dir, file)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resume run %s: %w", j.ID(), err), j.files[Answered].close())
	}
	return j, nil
}

// Open opens a run so that its results can be read. Nothing of it changes, and nobody
// works on it until Close; others may read it.
func Open(dir string) (*Journal, error) {
	return open(dir, Options{}, func(path string) (*os.File, error) { return support.OpenSharedLock(path, os.O_RDWR) })
}

func open(dir string, o Options, locked func(path string) (*os.File, error)) (*Journal, error) {
	m, err := ReadManifest(dir)
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
	for i := range j.files {
		if j.files[i].known == nil {
			j.files[i].known = map[int]span{}
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
	e := j.files[status].entry(row.Line, j.Manifest.Format)
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

// Keep implements run.Journal. Options.Sync says what is safe on the disk when it returns.
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
		if j.files[status].known != nil && len(d.text) > from {
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
			err = disk.WriteFile(filepath.Join(j.dir, totalsFile), SealFile(text), j.options.Sync.Forces())
		}
	}
	for i := len(j.files) - 1; i >= 0; i-- { // the lock last
		err = errors.Join(err, j.files[i].close())
	}
	return err
}

// Seen is what the stages saw of an item and made of it, without texts: enough to find these
// again.
type Seen struct {
	Lists Lists `json:"lists,omitempty"` // of the retrieve and rerank stages in file order, but for the one that is the result
	// Prompts are hashes (Hash) of the prompts of each prompt stage, as "prompt.classify".
	Prompts map[string][]string `json:"prompts,omitempty"`
	// Requests are the keys of voters' replies in the response cache, as sdk.Sample has them,
	// in hexadecimal, by voter, in the order of their samples.
	Requests map[string][]string `json:"requests,omitempty"`
	Rules    []outcome.Rule      `json:"rules,omitempty"`
	Retries  []outcome.Retry     `json:"retries,omitempty"`

	// Candidates are those of the last list alone, as an older racflow kept them.
	Candidates []Scored `json:"candidates,omitempty"`
}

// Notable reports whether a person may want to know what led to a result: KeepNotable keeps what was
// seen of it.
func Notable(r *outcome.Result) bool {
	switch {
	case r.Failure != nil || r.Flagged:
		return true
	case r.RetrievalOnly:
		return false
	}
	return r.Answer == "" || r.Expected != "" && !r.FreeText && r.Answer != r.Expected
}

// seen is what was seen of an item; nil: nothing.
func seen(r *outcome.Result) *Seen {
	var s Seen
	lists := r.Lists
	if r.RetrievalOnly && r.Failure == nil && len(lists) > 0 { // the last one is the result
		lists = lists[:len(lists)-1]
	}
	s.Lists = listsOf(lists)
	s.Rules, s.Retries = r.Rules, r.Retries
	for _, p := range r.Prompts {
		if s.Prompts == nil {
			s.Prompts = map[string][]string{}
		}
		s.Prompts[p.Stage] = append(s.Prompts[p.Stage], Hashes(p)...)
	}
	for _, q := range r.Requests {
		if s.Requests == nil {
			s.Requests = map[string][]string{}
		}
		s.Requests[q.Voter] = append(s.Requests[q.Voter], hex.EncodeToString(q.Key[:]))
	}
	if s.Lists == nil && s.Prompts == nil && s.Requests == nil && len(s.Rules) == 0 && len(s.Retries) == 0 {
		return nil
	}
	return &s
}

// Hashes are those of the prompts of a stage.
func Hashes(p outcome.Prompted) []string {
	all := p.Hashes
	for _, prompt := range p.Prompts {
		all = append(all[:len(all):len(all)], Hash(prompt))
	}
	return all
}

// Hash tells prompts apart: the first half of the SHA-256 of the prompt's JSON, in
// hexadecimal.
func Hash(p sdk.Prompt) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Sync says which results survive a power failure. When only the process ends, nothing that was
// kept is lost, whatever Sync is. A resumed run answers again what is lost.
type Sync string

// When the journal is forced to the disk.
const (
	// SyncNone leaves it to the system: a power failure may lose what was kept in the
	// seconds before it, also where the output has it already.
	SyncNone Sync = "none"
	// SyncBatch forces it once for each batch of results that travelled together, before
	// any of them is written to the output or reported: a power failure loses no result that
	// was reported.
	SyncBatch Sync = "batch"
	// SyncItem forces it for each result, before the next one of its batch is kept: a power
	// failure in the middle of a batch loses only one result.
	SyncItem Sync = "item"
)

// Forces reports whether anything is forced to the disk.
func (s Sync) Forces() bool { return s == SyncBatch || s == SyncItem }

// Keep says of which items the journal has what was seen of them.
type Keep string

// What a journal keeps.
const (
	KeepNotable Keep = "notable" // of items that are flagged, failed, wrong or without an answer
	KeepAll     Keep = "all"
)

// Options say how a run is kept. The zero value is SyncNone and KeepNotable.
type Options struct {
	Sync Sync
	Keep Keep

	disk syncedDisk // nil: that of the system
}

// file is an open file of a run.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// syncedDisk is where files are.
type syncedDisk interface {
	open(path string, flags int) (file, error)
	locked(*os.File) file
	syncFolder(path string) error
}

type system struct{}

func (system) open(path string, flags int) (file, error) {
	return os.OpenFile(path, flags, disk.FileMode)
}

func (system) locked(f *os.File) file { return lockedFile{f} }

// lockedFile is not locked any more once it is closed, whatever processes are being started.
type lockedFile struct{ *os.File }

func (f lockedFile) Close() error { return support.CloseLock(f.File) }

func (system) syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
