package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// File is the name of the file of answers. A process that works on a run locks this file.
const File = "journal.jsonl"

// The files of a run's folder, besides the manifest.
const (
	journalFile     = File
	failuresFile    = "failures.jsonl"
	provisionalFile = "provisional.jsonl"
	totalsFile      = "totals.json"
)

// Journal is an open run folder. It implements run.Journal.
type Journal struct {
	Manifest Manifest
	// Changed counts lines that were changed after they were written. Their items count as
	// unanswered.
	Changed int

	dir     string
	options Options

	mu      sync.Mutex
	files   files // the first file, with the answers, holds the lock
	earlier int   // items known when the journal was opened
	buffer  []byte
}

// create begins a run in a new folder.
func create(dir string, m Manifest, o Options) (*Journal, error) {
	j := &Journal{Manifest: m, dir: dir, options: o}
	err := j.locked(support.OpenLock(filepath.Join(j.dir, journalFile), os.O_RDWR|os.O_CREATE, disk.FileMode))
	if err == nil {
		err = m.Write(dir, o.Sync.forces())
	}
	if err == nil && o.Sync.forces() { // sync the folder and its parents, too: they may be new
		err = errors.Join(support.SyncFolder(dir), support.SyncFolder(filepath.Dir(dir)), support.SyncFolder(filepath.Dir(filepath.Dir(dir))))
	}
	if err != nil {
		return nil, errors.Join(err, j.files[Answered].close())
	}
	return j, nil
}

// locked processes the result of opening and locking the journal. Its error names another process that works on
// the run.
func (j *Journal) locked(f *support.File, err error) error {
	if errors.Is(err, support.ErrBusy) {
		return fmt.Errorf("run %s is being worked on by another process: wait until it is done", j.Manifest.ID)
	}
	if err == nil {
		j.files[Answered].file = f
	}
	return err
}

// resume opens a run to continue it. It removes the totals, the failures and the provisional
// answers, and an incomplete last line.
func resume(dir string, o Options) (*Journal, error) {
	j, err := open(dir, o, func(path string) (*support.File, error) { return support.OpenLock(path, os.O_RDWR, disk.FileMode) })
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

// Open opens a run for reading. It changes nothing. Until Close, other processes may read the run,
// but not work on it.
func Open(dir string) (*Journal, error) {
	return open(dir, Options{}, func(path string) (*support.File, error) { return support.OpenSharedLock(path, os.O_RDWR) })
}

func open(dir string, o Options, locked func(path string) (*support.File, error)) (*Journal, error) {
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

// ID is the name of the run.
func (j *Journal) ID() string { return j.Manifest.ID }

// Folder returns the run's folder.
func (j *Journal) Folder() string { return j.dir }

// Known returns how many items an earlier part of the run answered.
func (j *Journal) Known() int { return j.earlier }

// Index makes Answered and Results include the items that this part of the run keeps. Call it
// before Keep.
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

// entry returns the journal's entry of a row with this status; nil: none.
func (j *Journal) entry(status Status, row source.Row) *entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.files[status].entry(row.Line)
	if e == nil || e.ID != nameOf(row) || (e.Answer == nil) != (status == Failed) {
		return nil // so it is answered again
	}
	return e
}

// nameOf returns the id of a row's result, in valid UTF-8, because the journal keeps it as JSON.
func nameOf(row source.Row) string {
	if row.ID == "" {
		return strconv.Itoa(row.Line)
	}
	return string([]rune(row.ID))
}

// Keep implements run.Journal. Options.Sync says which results are on the disk when it returns.
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
		status := statusOf(&results[i])
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

// Close writes how the run ended, unless end is nil, and closes the files.
func (j *Journal) Close(end *Totals) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if end != nil {
		var text []byte
		if text, err = json.MarshalIndent(end, "", "  "); err == nil {
			err = disk.WriteFile(filepath.Join(j.dir, totalsFile), SealFile(text), j.options.Sync.forces())
		}
	}
	for i := len(j.files) - 1; i >= 0; i-- { // the lock last
		err = errors.Join(err, j.files[i].close())
	}
	return err
}

// Seen is what the stages read and wrote for an item, without the texts, but with all that is
// needed to find the texts.
type Seen struct {
	Lists Lists `json:"lists,omitempty"` // of the retrieve and rerank stages in file order, except the list that is the result
	// Prompts are hashes (Hash) of the prompts of each prompt stage, as "prompt.classify".
	Prompts map[string][]string `json:"prompts,omitempty"`
	// Requests are the keys of voters' replies in the response cache (sdk.Sample.Key), in
	// hexadecimal, by voter, in the order of their samples.
	Requests map[string][]string `json:"requests,omitempty"`
	Rules    []outcome.Rule      `json:"rules,omitempty"`
	Retries  []outcome.Retry     `json:"retries,omitempty"`
}

// Notable reports whether a person may ask what led to a result. KeepNotable keeps Seen for such
// results only.
func Notable(r *outcome.Result) bool {
	switch {
	case r.Failure != nil || r.Flagged:
		return true
	case r.RetrievalOnly:
		return false
	}
	return r.Answer == "" || r.Expected != "" && !r.FreeText && !r.Right()
}

// seen returns the Seen of an item; nil: it is empty.
func seen(r *outcome.Result) *Seen {
	var s Seen
	lists := r.Lists
	if r.RetrievalOnly && r.Failure == nil && len(lists) > 0 { // the last list is the result
		lists = lists[:len(lists)-1]
	}
	s.Lists = listsOf(lists)
	s.Rules, s.Retries = r.Rules, r.Retries
	for _, p := range r.Prompts {
		if s.Prompts == nil {
			s.Prompts = map[string][]string{}
		}
		s.Prompts[p.Stage] = append(s.Prompts[p.Stage], hashes(p)...)
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

// hashes returns the hashes of a stage's prompts.
func hashes(p outcome.Prompted) []string {
	all := p.Hashes
	for _, prompt := range p.Prompts {
		all = append(all[:len(all):len(all)], Hash(prompt))
	}
	return all
}

// Hash identifies a prompt: the first half of the SHA-256 of its JSON, in hexadecimal.
func Hash(p sdk.Prompt) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Sync defines which results survive a power failure. If only the process ends, no kept result is
// lost, whatever Sync is. A resumed run answers lost items again.
type Sync string

// Values of Sync: when the journal is synced to the disk.
const (
	// SyncNone leaves syncing to the system: a power failure may lose the results of the last
	// seconds, even if the output has them.
	SyncNone Sync = "none"
	// SyncBatch syncs the journal once per batch, before any of its results is written to the
	// output or reported: a power failure loses no reported result.
	SyncBatch Sync = "batch"
	// SyncItem syncs the journal for each result, before the next of its batch is kept: a power
	// failure in the middle of a batch loses only one result.
	SyncItem Sync = "item"
)

// forces reports whether the journal is synced to the disk at all.
func (s Sync) forces() bool { return s == SyncBatch || s == SyncItem }

// Keep defines for which items the journal keeps Seen.
type Keep string

// Values of Keep.
const (
	KeepNotable Keep = "notable" // items that are flagged, failed, wrong or without an answer
	KeepAll     Keep = "all"
)

// Options say how a run is kept. The zero value is SyncNone and KeepNotable.
type Options struct {
	Sync Sync
	Keep Keep
}
