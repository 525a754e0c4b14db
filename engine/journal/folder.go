package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/sdk/lock"
)

// Runs is the folder that keeps runs.
type Runs struct {
	dir   string
	clock func() time.Time
}

// Of returns the runs of a state folder.
func Of(state string) Runs { return Runs{filepath.Join(state, "runs"), time.Now} }

// Begin makes the folder of a run, whose ID and time it sets. Where it fails, it
// leaves none.
func (r Runs) Begin(m Manifest) (*Journal, error) {
	j, err := r.create(m)
	if err != nil {
		return nil, unkept(err)
	}
	if err = j.open(os.O_CREATE); err == nil {
		err = writeJSON(filepath.Join(j.dir, manifestFile), j.Manifest)
	}
	if err == nil {
		err = r.prune()
	}
	if err != nil {
		_ = j.lines.Close() // it is nil where it could not be opened
		return nil, errors.Join(unkept(err), os.RemoveAll(j.dir))
	}
	return j, nil
}

func unkept(err error) error {
	return fmt.Errorf("keep the run: %w; run without Options.Journal to keep nothing", err)
}

// create makes the folder of a run that begins now. Making it is what settles
// which of two processes that begin at once has a name.
func (r Runs) create(m Manifest) (*Journal, error) {
	err := private.MakeFolder(r.dir)
	for err == nil {
		at := r.clock().UTC()
		m.Started = at.Truncate(time.Millisecond)
		m.ID = nextID(at, r.list())
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
	j.lines, err = lock.Open(filepath.Join(j.dir, journalFile), os.O_RDWR|flags, 0o600)
	if errors.Is(err, lock.ErrBusy) {
		return fmt.Errorf("run %s is being worked on by another process: wait until it is done", j.Manifest.ID)
	}
	return err
}

// Resume opens a run to resume it. The folder is that of the run from then
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
		return nil, errors.Join(fmt.Errorf("resume run %s: %w", id, err), j.lines.Close())
	}
	return j, nil
}

// Folder is where the run is kept.
func (j *Journal) Folder() string { return j.dir }

// Manifest reads what a run was.
func (r Runs) Manifest(id string) (Manifest, error) {
	var m Manifest
	if !IsID(id) {
		return m, r.missing(id)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, id, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, r.missing(id)
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
		if end := r.End(id); end.Unfinished() || end.Failed > 0 {
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
