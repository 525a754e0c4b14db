package reviewed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// LineError says that a line of a file is not a decision.
type LineError struct {
	Path string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Read returns the decisions of a file, in its order; of several lines about the same subject only
// the last. A missing file has none. If labels are sets, people may have edited them: Read writes
// each set as sdk.JoinLabels does. The errors are a *LineError for each line that is no decision;
// the other lines are still read. An error of another type says that the file is unreadable.
func Read(path string, form sdk.LabelForm) ([]Row, []error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, []error{err}
	}
	var rows []Row
	var errs []error
	at := map[string]int{} // id -> position in rows, from 1
	for i, l := range lines {
		l.row.Line = i + 1
		if set := form.Canonical(l.row.Label); set == "" && l.row.Label != "" {
			l.err = fmt.Errorf("%q has no label", l.row.Label) // and it drops no row
		} else {
			l.row.Label = set
		}
		switch before := at[l.row.ID]; {
		case l.blank():
		case l.err != nil:
			errs = append(errs, &LineError{path, i + 1, l.err})
		case before > 0:
			rows[before-1] = l.row
		default:
			rows = append(rows, l.row)
			at[l.row.ID] = len(rows)
		}
	}
	return rows, errs
}

// line is a line of a file.
type line struct {
	text []byte // including its end
	row  Row
	err  error // why the line is no decision
}

func (l line) blank() bool { return len(bytes.TrimSpace(l.text)) == 0 }

func readLines(path string) ([]line, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []line
	for text := range bytes.SplitAfterSeq(content, []byte("\n")) {
		text = bytes.TrimPrefix(text, []byte("\ufeff")) // several files, each with a byte order mark, may have been joined
		l := line{text: text}
		if !l.blank() {
			l.err = json.Unmarshal(bytes.TrimSpace(text), &l.row)
			if l.err != nil {
				l.err, l.row = explained(l.err), Row{}
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// Write adds decisions to a file. Each replaces an earlier decision about the same subject; other
// lines stay as they are. Write creates a missing file and folder. When it returns without an error,
// the decisions are on the disk. The replacement is atomic. If check is not nil and returns an
// error, Write writes nothing and returns that error; no other process writes the file between check
// and replacement.
func Write(path string, check func() error, rows []Row) error {
	lines := make(map[string][]byte, len(rows))
	var order []string
	for _, r := range rows {
		text, err := r.line()
		if err != nil {
			return fmt.Errorf("the decision about %q cannot be kept: %w", r.Text, err)
		}
		id := ID(r.Text, r.Replaces)
		if lines[id] == nil {
			order = append(order, id)
		}
		lines[id] = text
	}
	return change(path, check, func(all []line) (after []byte) {
		last := map[string]int{}
		for i, l := range all {
			last[l.row.ID] = i
		}
		for i, l := range all {
			switch text := lines[l.row.ID]; {
			case l.err != nil || l.blank() || text == nil:
				after = append(after, l.text...)
			case last[l.row.ID] == i: // the others are earlier lines about the same subject
				after = append(after, text...)
				delete(lines, l.row.ID)
			}
		}
		for _, id := range order {
			if text := lines[id]; text != nil {
				after = append(ended(after), text...)
			}
		}
		return after
	})
}

// Remove removes the decisions with these ids from a file. Other lines stay as they are. A missing
// id is no error. check is as in Write.
func Remove(path string, check func() error, ids ...string) error {
	return change(path, check, func(all []line) (after []byte) {
		for _, l := range all {
			if l.err != nil || l.blank() || !slices.Contains(ids, l.row.ID) {
				after = append(after, l.text...)
			}
		}
		return after
	})
}

// ended adds a missing line end to the last line, which a person may have edited.
func ended(text []byte) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return append(text, '\n')
	}
	return text
}

// patience is how long Write and Remove wait for other writers of a file, which need milliseconds.
const patience = 30 * time.Second

// change replaces the content of a file by the result of f for its lines, unless check returns an
// error.
func change(path string, check func() error, f func([]line) []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	var file *disk.Output
	for until := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		busy := new(disk.BusyError)
		if file, err = disk.OpenOutput(path, nil); !errors.As(err, &busy) || time.Now().After(until) {
			break
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if check != nil { // under the lock
		if err := check(); err != nil {
			return err
		}
	}
	lines, err := readLines(path)
	if err != nil {
		return err
	}
	if _, err := file.Write(f(lines)); err != nil {
		return err
	}
	return file.Commit()
}

// Decisions maps texts to their decisions.
type Decisions map[string]Row

// Of indexes decisions by text. A decision about the text itself takes precedence over a decision
// that gives this text to a row of another source. If there are several of the latter, the last one
// counts. Rows that only drop others are omitted.
func Of(rows []Row) Decisions {
	d := make(Decisions, len(rows))
	for _, r := range rows {
		text := source.Normal(r.Text)
		if before, known := d[text]; !r.Drops() && (!known || r.Replaces == "" || before.Replaces != "") {
			d[text] = r
		}
	}
	return d
}

// Find returns the decision about a text. It compares texts as racflow doctor does (source.Normal):
// ignoring case and the amount of white space.
func (d Decisions) Find(text string) (Row, bool) {
	if len(d) == 0 {
		return Row{}, false
	}
	r, ok := d[source.Normal(text)]
	return r, ok
}
