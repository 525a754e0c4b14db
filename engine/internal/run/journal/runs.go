package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
)

// This file manages the state's folder of runs: it names runs, lists them, finds the one to resume,
// and removes old ones.
//
// Runs are numbered from run-000001. No number is used twice: a new run's number is above every existing
// and every removed run; the file "last" records the numbers. If two processes begin at once, the process
// that makes the folder gets the number. So order and age do not depend on the clock alone: a higher
// number is newer, and a run is no older than the runs before it, whatever its manifest says.
//
// When a run begins, finished runs are removed by Retention, the lowest number first, and reported.
// An unfinished run stays until it is resumed or removed by name (Totals.owes): it was cut off or
// interrupted, items were left unanswered, a voter is missing from answers, or items failed after
// models were asked about them. Runs that a process works on stay, too, and so does the newest
// finished run.
//

// Runs is the folder with the runs of a state folder.
type Runs struct {
	dir   string
	clock func() time.Time
}

// RunsOf returns the runs of a state folder.
func RunsOf(state string) Runs { return Runs{filepath.Join(state, "runs"), time.Now} }

// Begin makes the folder of a run, and sets the run's ID and time. It removes old runs by keep, and returns their
// IDs. If it fails, it leaves no folder.
func (r Runs) Begin(m Manifest, o Options, keep Retention) (_ *Journal, removed []string, err error) {
	if m, err = r.create(m); err != nil {
		return nil, nil, unkept(err)
	}
	dir := r.folder(m.ID)
	j, err := create(dir, m, o)
	if err != nil {
		return nil, nil, errors.Join(unkept(err), os.RemoveAll(dir))
	}
	if removed, err = r.prune(keep); err != nil {
		return nil, removed, errors.Join(unkept(err), j.Close(nil), os.RemoveAll(dir))
	}
	return j, removed, nil
}

func unkept(err error) error {
	return fmt.Errorf("keep the run: %w; name another state folder with Options.State, or run without Options.Journal to keep nothing", err)
}

// create makes the folder of a new run.
func (r Runs) create(m Manifest) (Manifest, error) {
	err := disk.MakeFolder(r.dir)
	for err == nil {
		_, highest := r.list()
		m.Format, m.Started, m.ID = currentFormat, r.clock().UTC().Truncate(time.Millisecond), newID(highest+1)
		if err = os.Mkdir(r.folder(m.ID), 0o700); errors.Is(err, fs.ErrExist) { // another process began a run in between
			err = nil
			continue
		}
		if err != nil {
			break
		}
		if r.marked() <= highest { // otherwise that run was made and removed in between
			return m, r.mark(highest + 1)
		}
		err = os.Remove(r.folder(m.ID))
	}
	return m, err
}

func (r Runs) folder(id string) string { return filepath.Join(r.dir, id) }

// Resume opens a run to continue it.
func (r Runs) Resume(id string, o Options) (*Journal, error) {
	if err := r.check(id); err != nil {
		return nil, err
	}
	return resume(r.folder(id), o)
}

// Open opens a run for reading. It changes nothing. Until Close, other processes may read the run,
// but not work on it.
func (r Runs) Open(id string) (*Journal, error) {
	if err := r.check(id); err != nil {
		return nil, err
	}
	return Open(r.folder(id))
}

// Manifest reads the manifest of a run.
func (r Runs) Manifest(id string) (Manifest, error) {
	if err := r.check(id); err != nil {
		return Manifest{}, err
	}
	m, err := ReadManifest(r.folder(id))
	if err != nil {
		return m, fmt.Errorf("run %s: %w", id, err)
	}
	return m, nil
}

// check refuses an id that names no run, or a run that was killed before it had a manifest.
func (r Runs) check(id string) error {
	if !IsRunID(id) || !hasManifest(r.folder(id)) {
		return r.missing(id)
	}
	return nil
}

func (r Runs) missing(id string) error {
	if !IsRunID(id) {
		return fmt.Errorf("%q is not the name of a run, such as %s", id, newID(123))
	}
	return fmt.Errorf("there is no run %s in %s: it was removed, or belongs to another state folder", id, r.dir)
}

// Newest returns the newest run of a pipeline that is unfinished or has failed items; false: there
// is none.
func (r Runs) Newest(file, pipeline string) (Manifest, bool) {
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		m, err := r.Manifest(id)
		if err != nil || m.File != file || m.Pipeline != pipeline || busy(r.folder(id)) {
			continue
		}
		if end := r.End(id); end.Unfinished() || end.Failed > end.Unusable {
			return m, true
		}
	}
	return Manifest{}, false
}

// NothingLeft returns the error for a search that finds no run to resume, for a file and pipeline or, with
// an empty file, for any. It names a run that another process still works on.
func (r Runs) NothingLeft(file, pipeline string) error {
	of := ""
	if file != "" {
		of = " of " + file
	}
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		m, _ := r.Manifest(id)
		if busy(r.folder(id)) && (file == "" || m.File == file && m.Pipeline == pipeline) {
			return fmt.Errorf("another process is at work on run %s, and no other run%s in %s left anything to do: wait until it has ended", id, of, r.dir)
		}
	}
	return fmt.Errorf("no run%s in %s left anything to do; a run without Options.Resume begins anew", of, r.dir)
}

// End returns how a run ended; nil: it was cut off, or is still at work.
func (r Runs) End(id string) *Totals { return End(r.folder(id)) }

// Last returns the newest run; false: there is none.
func (r Runs) Last() (string, bool) {
	ids, _ := r.list()
	if len(ids) == 0 {
		return "", false
	}
	return ids[len(ids)-1], true
}

// numbered is the form of a run's name.
var numbered = regexp.MustCompile(`^run-(\d{6,18})$`)

// marker is the file with the numbers used.
const marker = "last"

// IsRunID reports whether a text could name a run.
func IsRunID(text string) bool { return numbered.MatchString(text) }

// number returns the number of a run.
func number(id string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(id, "run-"), 10, 64) // numbered lets only numbers pass
	return n
}

func newID(n int64) string { return fmt.Sprintf("run-%06d", n) }

// list returns the names of all runs, oldest first, and the highest number used.
func (r Runs) list() (ids []string, highest int64) {
	highest = r.marked()
	entries, _ := os.ReadDir(r.dir) // no entries: there are no runs
	for _, e := range entries {
		if e.IsDir() && IsRunID(e.Name()) {
			highest = max(highest, number(e.Name()))
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return ids, highest
}

// marked returns the highest number that the marker records.
func (r Runs) marked() (highest int64) {
	text, _ := os.ReadFile(filepath.Join(r.dir, marker)) // without it, no run began
	for line := range strings.FieldsSeq(string(text)) {
		n, _ := strconv.ParseInt(line, 10, 64) // a damaged line counts as 0
		highest = max(highest, n)
	}
	return highest
}

// mark records that a number is used. It appends a line, so that no number is lost if several processes do so
// at once.
func (r Runs) mark(n int64) error {
	if n <= r.marked() {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(r.dir, marker), os.O_WRONLY|os.O_APPEND|os.O_CREATE, disk.FileMode)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, n)
	return errors.Join(err, f.Close())
}
