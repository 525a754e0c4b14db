package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/support"
)

// scan indexes the items that earlier parts of the run kept.
func (j *Journal) scan() error {
	for status := range j.files {
		s := &j.files[status]
		if s.file == nil {
			f, err := support.OpenFile(filepath.Join(j.dir, shelfFiles[status]), os.O_RDWR, 0)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			s.file = f
		}
		changed, err := s.scan()
		if err != nil {
			return err
		}
		if Status(status) == Answered {
			j.Changed, j.earlier = changed, len(s.known)
		}
	}
	return nil
}

// scan indexes the lines of a file by line of the input, and finds the end of its last complete
// line. It returns how many lines were changed and not written again.
func (s *lineFile) scan() (changed int, err error) {
	s.known, s.size = map[int]span{}, 0
	type lost struct {
		line int
		at   int64
	}
	var all []lost
	for r := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, math.MaxInt64), 256<<10); ; {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		var e struct {
			Line int `json:"line"`
		}
		if err = json.Unmarshal(text, &e); err != nil || !Sealed(text) {
			all = append(all, lost{e.Line, s.size})
		} else {
			s.known[e.Line] = span{s.size, len(text)}
		}
		s.size += int64(len(text))
	}
	for _, l := range all {
		if now, ok := s.known[l.line]; !ok || now.from < l.at {
			changed++
		}
	}
	return changed, nil
}

// parse reads a line; nil: the line was changed.
func parse(text []byte) *entry {
	e := new(entry)
	if !Sealed(text) || json.Unmarshal(text, e) != nil {
		return nil
	}
	return e
}

// busy reports whether a process works on the run in a folder.
func busy(dir string) bool {
	f, err := support.OpenSharedLock(filepath.Join(dir, journalFile), os.O_RDWR)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return errors.Is(err, support.ErrBusy)
}

// count sums up the answers in a folder's journal, even while a process works on it: Items,
// Answered, Undecided, Flagged, Usage and Cost.
func count(dir string) (t outcome.Totals) {
	f, err := support.OpenFile(filepath.Join(dir, journalFile), os.O_RDONLY, 0)
	if err != nil {
		return t
	}
	defer f.Close() //nolint:errcheck // it was only read
	s := lineFile{file: f}
	_, _ = s.scan()                                          // unreadable lines are skipped
	for _, line := range slices.Sorted(maps.Keys(s.known)) { // sorted, as floating-point sums depend on the order
		if e := s.entry(line); e != nil {
			r := e.result()
			r.RetrievalOnly = len(r.Candidates) > 0
			t.Add(r)
		}
	}
	return t
}

// size returns the bytes of a folder's files.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// End returns how the run in a folder ended; nil: it was cut off, is still at work, or its totals
// were changed.
func End(dir string) *Totals {
	text, err := os.ReadFile(filepath.Join(dir, totalsFile))
	end := new(Totals)
	if err != nil || !Sealed(text) || json.Unmarshal(text, end) != nil {
		return nil
	}
	return end
}

// lineFile is a file of lines that grows at its end.
type lineFile struct {
	file  *support.File // nil: not created yet
	size  int64
	known map[int]span // by line of the input; nil: not indexed
}

// span is the position of a line in its file.
type span struct {
	from   int64
	length int
}

// draft holds lines to add to a file.
type draft struct {
	text  []byte
	spans map[int]span // relative to the draft
}

func (d *draft) add(line int, from int) {
	if d.spans == nil {
		d.spans = map[int]span{}
	}
	d.spans[line] = span{int64(from), len(d.text) - from}
}

// append adds a draft. If a write is partial, as on a full disk, or cannot be synced, append undoes
// it, so that the next line starts cleanly.
func (s *lineFile) append(d draft, force bool) error {
	n, err := s.file.WriteAt(d.text, s.size)
	if err == nil && force {
		err = s.file.Sync()
	}
	if err != nil {
		if n > 0 {
			err = errors.Join(err, s.file.Truncate(s.size))
		}
		return err
	}
	if s.known != nil {
		for line, at := range d.spans {
			at.from += s.size
			s.known[line] = at
		}
	}
	s.size += int64(n)
	return nil
}

// entry reads the line of an item; nil: there is none, or it was changed.
func (s *lineFile) entry(line int) *entry {
	at, ok := s.known[line]
	if !ok {
		return nil
	}
	text := make([]byte, at.length)
	if _, err := s.file.ReadAt(text, at.from); err != nil {
		return nil
	}
	return parse(text)
}

func (s *lineFile) close() error {
	if s.file == nil {
		return nil
	}
	return support.CloseLock(s.file) // only the journal is locked; for other files this only closes
}

// files are the files of a run, by Status of their items.
type files [Failed + 1]lineFile

var shelfFiles = [...]string{Answered: journalFile, Provisional: provisionalFile, Failed: failuresFile}

// statusOf returns the Status of a result, which selects its file.
func statusOf(r *outcome.Result) Status {
	switch {
	case r.Failure != nil:
		return Failed
	case len(r.Missing) > 0:
		return Provisional
	}
	return Answered
}

// add adds drafts to their files. Files other than the journal itself are created with their first
// line.
func (j *Journal) add(drafts *[Failed + 1]draft) error {
	var errs []error
	for status := range drafts {
		d, s := drafts[status], &j.files[status]
		if len(d.text) == 0 {
			continue
		}
		err := j.make(s, shelfFiles[status])
		if err == nil {
			err = s.append(d, j.options.Sync.forces())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (j *Journal) make(s *lineFile, name string) (err error) {
	if s.file != nil {
		return nil
	}
	if s.file, err = support.OpenFile(filepath.Join(j.dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, disk.FileMode); err != nil {
		return err
	}
	if j.options.Sync.forces() {
		return support.SyncFolder(j.dir)
	}
	return nil
}
