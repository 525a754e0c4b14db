package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// The files of a run's folder.
const (
	manifestFile = "manifest.json"
	journalFile  = "journal.jsonl"
	failuresFile = "failures.jsonl"
	totalsFile   = "totals.json"
)

// Journal is a run's folder that is being written. It implements run.Journal.
type Journal struct {
	Manifest Manifest
	dir      string
	known    map[int]span // by line of the input; what an earlier part of the run answered. nil: there is none

	mu       sync.Mutex
	lines    *os.File // holds the lock
	size     int64
	failures *os.File // nil: none so far
	buffer   []byte
}

// span is where an entry stands in the file.
type span struct {
	from   int64
	length int
}

// Known is how many items an earlier part of the run has answered.
func (j *Journal) Known() int { return len(j.known) }

// ID names the run.
func (j *Journal) ID() string { return j.Manifest.ID }

// Answered implements run.Journal.
func (j *Journal) Answered(row source.Row) (run.Result, bool) {
	at, ok := j.known[row.Line]
	if !ok {
		return run.Result{}, false
	}
	text := make([]byte, at.length)
	var e entry
	if _, err := j.lines.ReadAt(text, at.from); err != nil || json.Unmarshal(text, &e) != nil || e.ID != nameOf(row) {
		return run.Result{}, false // then it is answered again
	}
	return e.result(), true
}

// nameOf is the id that a row's result has. The journal keeps it as JSON does,
// in valid UTF-8.
func nameOf(row source.Row) string {
	if row.ID == "" {
		return strconv.Itoa(row.Line)
	}
	return string([]rune(row.ID))
}

// Keep implements run.Journal.
func (j *Journal) Keep(results []run.Result) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.keep(results); err != nil {
		return fmt.Errorf("journal of the run: %w; free some space, or do without with --no-journal", err)
	}
	return nil
}

func (j *Journal) keep(results []run.Result) (err error) {
	answers, failed := j.buffer[:0], []byte(nil)
	for _, r := range results {
		to := &answers
		if r.Failure != nil {
			to = &failed
		}
		if *to, err = appendEntry(*to, r); err != nil {
			return err
		}
	}
	j.buffer = answers
	if err := j.write(); err != nil || len(failed) == 0 {
		return err
	}
	if j.failures == nil {
		if j.failures, err = os.OpenFile(filepath.Join(j.dir, failuresFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return err
		}
	}
	_, err = j.failures.Write(failed)
	return err
}

// write appends the buffer to the journal. What a full disk took only part of
// is taken back, so that the next line does not run on from it.
func (j *Journal) write() error {
	n, err := j.lines.WriteAt(j.buffer, j.size)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, j.lines.Truncate(j.size))
		}
		return err
	}
	j.size += int64(n)
	return nil
}

// read finds the answers of earlier parts of the run, and takes away what
// follows the last whole line.
func (j *Journal) read() error {
	j.known = map[int]span{}
	r := bufio.NewReaderSize(j.lines, 256<<10)
	for {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return j.lines.Truncate(j.size)
		}
		if err != nil {
			return err
		}
		var e struct {
			Line   int     `json:"line"`
			Answer *string `json:"answer"`
		}
		if json.Unmarshal(text, &e) == nil && e.Answer != nil && !unusable(text) { // else the line is damaged, or of an item that failed: once those stood here, too
			j.known[e.Line] = span{j.size, len(text)}
		}
		j.size += int64(len(text))
	}
}

// unusable reports whether a number of an answer could not be written, since it was
// not finite: once stages could return such. The item is then answered again.
func unusable(line []byte) bool {
	return bytes.Contains(line, []byte(`"weight":null`)) || bytes.Contains(line, []byte(`"agreement":null`))
}

// Close ends the writing, with how the run ended.
func (j *Journal) Close(end *Totals) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if end != nil {
		err = writeJSON(filepath.Join(j.dir, totalsFile), end)
	}
	if j.failures != nil {
		err = errors.Join(err, j.failures.Close())
	}
	return errors.Join(err, j.lines.Close()) // and with it the lock
}

// Discard closes the journal of a run that did not begin, and removes its folder
// unless the run is one that is gone on with.
func (j *Journal) Discard() error {
	err := j.Close(nil)
	if j.known != nil {
		return err
	}
	return errors.Join(err, os.RemoveAll(j.dir))
}

// writeJSON writes a file that is there as a whole or not at all.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
