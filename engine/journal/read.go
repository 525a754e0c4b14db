package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/engine/source"
)

// Open opens a run so that its answers can be read. Nothing of it changes, and nobody
// else works on it until Close.
func (r Runs) Open(id string) (*Journal, error) {
	m, err := r.Manifest(id)
	if err != nil {
		return nil, err
	}
	j := &Journal{Manifest: m, dir: filepath.Join(r.dir, id)}
	if err := j.open(0); err != nil {
		return nil, err
	}
	if j.known, j.size, err = scan(j.lines); err != nil {
		return nil, errors.Join(fmt.Errorf("read run %s: %w", id, err), j.lines.Close())
	}
	return j, nil
}

// Unanswered is why a row is not Answered.
type Unanswered int

// Reasons why a row is not Answered.
const (
	Unreached   Unanswered = iota // the run ended before it
	Failed                        // a stage failed
	Provisional                   // the answer lacks a voter
)

// Unanswered returns the rows that the journal has and that are not Answered, by line of
// the input.
func (j *Journal) Unanswered() (map[int]Unanswered, error) {
	all := map[int]Unanswered{}
	for why, file := range map[Unanswered]string{Failed: failuresFile, Provisional: withoutFile} {
		if err := j.eachLine(file, func(line int) { all[line] = why }); err != nil {
			return nil, fmt.Errorf("read run %s: %w", j.ID(), err)
		}
	}
	return all, nil
}

// eachLine calls f with the lines of the input that a file of the run is about.
func (j *Journal) eachLine(file string, f func(int)) error {
	in, err := os.Open(filepath.Join(j.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadBytes('\n')
		var e struct{ Line int }
		if err == nil && json.Unmarshal(text, &e) == nil { // else the line is cut off or damaged
			f(e.Line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Rows opens the input of the run, whose texts the journal does not have. It fails where
// the file is another than it was.
func (m Manifest) Rows() (*source.Reader, error) {
	if m.Columns == nil {
		return nil, fmt.Errorf("run %s does not say how its input is read, since an older racflow kept it: run it again", m.ID)
	}
	same, err := m.Input.Unchanged()
	if err != nil {
		return nil, fmt.Errorf("run %s has no texts, and its input cannot be read again: %w; put the file back, or run it again", m.ID, err)
	}
	if !same {
		return nil, fmt.Errorf("run %s has no texts, and its input %s has changed since: put the old file back, or run it again", m.ID, m.Input.Path)
	}
	c := m.Columns
	return source.Open(m.Input.Path, c.Form, source.Mapping{ID: c.ID, Text: c.Text, Meta: []string{}}, nil)
}
