package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/private"
)

// kept is how many runs are kept; beginning another one removes the oldest.
const kept = 20

// idPattern is what the name of a run looks like: when it began (UTC), to the
// second and then in 2^-24 of it. So names rise in the order of the runs.
var idPattern = regexp.MustCompile(`^\d{8}-\d{6}-[0-9a-f]{6}$`)

// IsID reports whether a text could name a run.
func IsID(text string) bool { return idPattern.MatchString(text) }

// Runs is the folder that keeps runs.
type Runs struct{ dir string }

// Of returns the runs of a state folder.
func Of(state string) Runs { return Runs{filepath.Join(state, "runs")} }

// Begin makes the folder of a run, whose ID and time it sets.
func (r Runs) Begin(m Manifest) (*Journal, error) {
	j, err := r.create(m)
	if err == nil {
		err = j.open(os.O_CREATE)
	}
	if err == nil {
		err = writeJSON(filepath.Join(j.dir, manifestFile), j.Manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("keep the run: %w; --no-journal runs without", err)
	}
	return j, r.prune()
}

// create makes the folder of a run that begins now. A name that another process
// took at the same moment is not taken again.
func (r Runs) create(m Manifest) (*Journal, error) {
	err := private.MakeFolder(r.dir)
	for err == nil {
		at := time.Now().UTC()
		m.Started = at.Truncate(time.Millisecond)
		m.ID = fmt.Sprintf("%s-%06x", at.Format("20060102-150405"), int64(at.Nanosecond())<<24/int64(time.Second))
		dir := filepath.Join(r.dir, m.ID)
		if err = os.Mkdir(dir, 0o700); err == nil {
			return &Journal{Manifest: m, dir: dir}, nil
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return nil, err
}

// open opens the journal and locks it.
func (j *Journal) open(flags int) (err error) {
	if j.lines, err = os.OpenFile(filepath.Join(j.dir, journalFile), os.O_RDWR|flags, 0o600); err != nil {
		return err
	}
	if err := lock(j.lines); err != nil {
		_ = j.lines.Close() // nothing was written
		return fmt.Errorf("run %s is being worked on by another process: wait until it is done (%w)", j.Manifest.ID, err)
	}
	return nil
}

// Resume opens a run to go on with it. The folder is that of the run from then
// on, and no longer says how it ended before.
func (r Runs) Resume(id string) (*Journal, error) {
	m, err := r.Manifest(id)
	if err != nil {
		return nil, err
	}
	j := &Journal{Manifest: m, dir: filepath.Join(r.dir, id)}
	if err := j.open(0); err != nil {
		return nil, err
	}
	err = j.read()
	for _, file := range []string{totalsFile, failuresFile, withoutFile} { // their items are asked again
		if e := os.Remove(filepath.Join(j.dir, file)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("go on with run %s: %w", id, err), j.lines.Close())
	}
	return j, nil
}

// Manifest reads what a run was.
func (r Runs) Manifest(id string) (Manifest, error) {
	var m Manifest
	if !IsID(id) {
		return m, fmt.Errorf("%q is not the name of a run, such as 20260131-235959-0a1b2c", id)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, id, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("there is no run %s in %s: it was removed, or belongs to another --state", id, r.dir)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("run %s: %w", id, err)
	}
	if m.ID != id {
		return m, fmt.Errorf("run %s: its manifest is of run %q", id, m.ID)
	}
	return m, nil
}

// Newest returns the newest run of a pipeline that left something to do; false:
// there is none.
func (r Runs) Newest(file, pipeline string) (Manifest, bool) {
	ids := r.list()
	slices.Reverse(ids)
	for _, id := range ids {
		m, err := r.Manifest(id)
		if err != nil || m.File != file || m.Pipeline != pipeline || r.busy(id) {
			continue
		}
		if r.End(id).Unfinished() {
			return m, true
		}
	}
	return Manifest{}, false
}

// End returns how a run ended; nil: it was cut off, or is at work.
func (r Runs) End(id string) *Totals {
	text, err := os.ReadFile(filepath.Join(r.dir, id, totalsFile))
	end := new(Totals)
	if err != nil || json.Unmarshal(text, end) != nil {
		return nil
	}
	return end
}

// busy reports whether a process is at work on the run.
func (r Runs) busy(id string) bool {
	f, err := os.OpenFile(filepath.Join(r.dir, id, journalFile), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return lock(f) != nil
}

// list returns the names of all runs, oldest first.
func (r Runs) list() []string {
	entries, _ := os.ReadDir(r.dir) // none: there are no runs
	var ids []string
	for _, e := range entries {
		if e.IsDir() && IsID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}

// prune removes the oldest runs beyond those that are kept, but none that
// another process is at work on.
func (r Runs) prune() error {
	ids := r.list()
	for _, id := range ids[:max(len(ids)-kept, 0)] {
		if r.busy(id) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.dir, id)); err != nil {
			return fmt.Errorf("remove an old run: %w", err)
		}
	}
	return nil
}
