package journal

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/engine/outcome"
)

// shelf is a file of lines that grows at its end.
type shelf struct {
	file  file // nil: there is none so far
	size  int64
	known map[int]span // by line of the input; nil: nobody asks
}

// span is where a line stands in its file.
type span struct {
	from   int64
	length int
}

// draft is what is to be added to a shelf.
type draft struct {
	text  []byte
	spans map[int]span // from the draft's beginning
}

func (d *draft) add(line int, from int) {
	if d.spans == nil {
		d.spans = map[int]span{}
	}
	d.spans[line] = span{int64(from), len(d.text) - from}
}

// append adds a draft. A partial write, as on a full disk, is undone, so that the next
// line begins a line; so is one that cannot be forced to the disk.
func (s *shelf) append(d draft, force bool) error {
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
func (s *shelf) entry(line, format int) *entry {
	at, ok := s.known[line]
	if !ok {
		return nil
	}
	text := make([]byte, at.length)
	if _, err := s.file.ReadAt(text, at.from); err != nil {
		return nil
	}
	return parse(text, format)
}

func (s *shelf) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// kinds are the shelves of a run, by what its items have come to.
type kinds [Failed + 1]shelf

var shelfFiles = [...]string{Answered: journalFile, Provisional: provisionalFile, Failed: failuresFile}

// of says on which shelf a result belongs.
func of(r *outcome.Result) Status {
	switch {
	case r.Failure != nil:
		return Failed
	case len(r.Missing) > 0:
		return Provisional
	}
	return Answered
}

// add adds drafts to their shelves. Files other than the journal itself are made when
// there is something to write.
func (j *Journal) add(drafts *[Failed + 1]draft) error {
	var errs []error
	for status := range drafts {
		d, s := drafts[status], &j.shelves[status]
		if len(d.text) == 0 {
			continue
		}
		err := j.make(s, shelfFiles[status])
		if err == nil {
			err = s.append(d, j.options.Sync.Forces())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (j *Journal) make(s *shelf, name string) (err error) {
	if s.file != nil {
		return nil
	}
	if s.file, err = j.disk().open(filepath.Join(j.dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC); err != nil {
		s.file = nil // an interface of a nil pointer is not nil
		return err
	}
	if j.options.Sync.Forces() {
		return j.disk().syncFolder(j.dir)
	}
	return nil
}
