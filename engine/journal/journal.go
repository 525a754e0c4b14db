package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/source"
)

// The files of a run's folder.
const (
	manifestFile = "manifest.json"
	journalFile  = "journal.jsonl"
	failuresFile = "failures.jsonl"
	withoutFile  = "provisional.jsonl"
	totalsFile   = "totals.json"
)

// Journal is a run's folder that is being written. It implements run.Journal.
type Journal struct {
	Manifest Manifest
	dir      string
	known    map[int]span // by line of the input; what is answered. nil: nothing

	mu       sync.Mutex
	index    bool
	lines    *os.File // holds the lock
	size     int64
	failures retries
	without  retries // provisional answers
	buffer   []byte
}

// retries is a file of items that a resumed run asks again. That run truncates it, so that
// items that fail every time do not add up.
type retries struct{ file *os.File } // nil: none so far

func (s *retries) append(path string, text []byte) (err error) {
	if len(text) == 0 {
		return nil
	}
	if s.file == nil {
		if s.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return err
		}
	}
	_, err = s.file.Write(text)
	return err
}

func (s *retries) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// span is where an entry stands in the file.
type span struct {
	from   int64
	length int
}

// Known is how many items an earlier part of the run has answered.
func (j *Journal) Known() int { return len(j.known) }

// Index makes Answered return what this part of the run keeps, too.
func (j *Journal) Index() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index = true
}

// ID names the run.
func (j *Journal) ID() string { return j.Manifest.ID }

// Answered implements run.Journal.
func (j *Journal) Answered(row source.Row) (outcome.Result, bool) {
	j.mu.Lock()
	at, ok := j.known[row.Line]
	j.mu.Unlock()
	if !ok {
		return outcome.Result{}, false
	}
	text := make([]byte, at.length)
	var e entry
	if _, err := j.lines.ReadAt(text, at.from); err != nil || json.Unmarshal(text, &e) != nil || e.Answer == nil || e.ID != nameOf(row) {
		return outcome.Result{}, false // then it is answered again
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
func (j *Journal) Keep(results []outcome.Result) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.keep(results); err != nil {
		return fmt.Errorf("journal of the run: %w; free some space, or run without Options.Journal", err)
	}
	return nil
}

func (j *Journal) keep(results []outcome.Result) (err error) {
	answers := j.buffer[:0]
	var failed, without []byte
	added := map[int]span{}
	for _, r := range results {
		to := &answers
		switch {
		case r.Failure != nil:
			to = &failed
		case len(r.Missing) > 0:
			to = &without
		}
		var infinite *json.UnsupportedValueError
		from := len(*to)
		if *to, err = appendEntry(*to, r); err != nil && !errors.As(err, &infinite) {
			return err // a number that is not finite is no answer: a resumed run asks again
		}
		if j.index && to == &answers && len(answers) > from {
			added[r.Line] = span{j.size + int64(from), len(answers) - from}
		}
	}
	j.buffer = answers
	if err := j.write(); err != nil {
		return err
	}
	if j.known == nil && j.index {
		j.known = map[int]span{}
	}
	maps.Copy(j.known, added)
	return errors.Join(
		j.failures.append(filepath.Join(j.dir, failuresFile), failed),
		j.without.append(filepath.Join(j.dir, withoutFile), without))
}

// write appends the buffer to the journal. A partial write, as on a full disk, is undone, so
// that the next line begins a line.
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

// read finds the answers of earlier parts of the run, and drops an incomplete last line.
func (j *Journal) read() (err error) {
	if j.known, j.size, err = scan(j.lines); err != nil {
		return err
	}
	return j.lines.Truncate(j.size)
}

// scan finds the answers in a journal, by line of the input, and the end of its last
// complete line.
func scan(lines io.Reader) (known map[int]span, size int64, err error) {
	known = map[int]span{}
	r := bufio.NewReaderSize(lines, 256<<10)
	for {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return known, size, nil
		}
		if err != nil {
			return known, size, err
		}
		var e struct {
			Line   int     `json:"line"`
			Answer *string `json:"answer"`
		}
		if json.Unmarshal(text, &e) == nil && e.Answer != nil && !unusable(text) { // else the line is damaged, or of an item that failed: once those stood here, too
			known[e.Line] = span{size, len(text)}
		}
		size += int64(len(text))
	}
}

// unusable reports whether an older racflow wrote an answer with a number that is not finite.
// The item is then answered again.
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
	return errors.Join(err, j.failures.close(), j.without.close(), j.lines.Close()) // and with it the lock
}

// writeJSON writes a file whole or not at all.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return private.WriteFile(path, append(text, '\n'), false)
}
