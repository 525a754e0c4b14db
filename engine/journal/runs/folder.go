package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/private"
)

// Runs is the folder that keeps runs.
type Runs struct {
	dir   string
	clock func() time.Time
}

// Of returns the runs of a state folder.
func Of(state string) Runs { return Runs{filepath.Join(state, "runs"), time.Now} }

// Begin makes the folder of a run, whose ID and time it sets, and removes what keep does not
// keep. Where it fails, it leaves no folder.
func (r Runs) Begin(m manifest.Manifest, o journal.Options, keep Retention) (*journal.Journal, []Removed, error) {
	m, err := r.create(m)
	if err != nil {
		return nil, nil, unkept(err)
	}
	dir := r.folder(m.ID)
	j, err := journal.Create(dir, m, o)
	if err != nil {
		return nil, nil, errors.Join(unkept(err), os.RemoveAll(dir))
	}
	removed, err := r.prune(keep)
	if err != nil {
		return nil, removed, errors.Join(unkept(err), j.Close(nil), os.RemoveAll(dir))
	}
	return j, removed, nil
}

func unkept(err error) error {
	return fmt.Errorf("keep the run: %w; name another state folder with Options.State, or run without Options.Journal to keep nothing", err)
}

// create makes the folder of a run that begins now.
func (r Runs) create(m manifest.Manifest) (manifest.Manifest, error) {
	err := private.MakeFolder(r.dir)
	for err == nil {
		_, highest := r.list()
		m.Format, m.Started, m.ID = manifest.Current, r.clock().UTC().Truncate(time.Millisecond), newID(highest+1)
		if err = os.Mkdir(r.folder(m.ID), 0o700); errors.Is(err, fs.ErrExist) { // another process began a run in between
			err = nil
			continue
		}
		if err != nil {
			break
		}
		if r.marked() <= highest { // else that run was removed again
			return m, r.mark(highest + 1)
		}
		err = os.Remove(r.folder(m.ID))
	}
	return m, err
}

func (r Runs) folder(id string) string { return filepath.Join(r.dir, id) }

// Resume opens a run to resume it.
func (r Runs) Resume(id string, o journal.Options) (*journal.Journal, error) {
	if err := r.check(id); err != nil {
		return nil, err
	}
	return journal.Resume(r.folder(id), o)
}

// Open opens a run so that its results can be read. Nothing of it changes, and nobody works on
// it until Close; others may read it.
func (r Runs) Open(id string) (*journal.Journal, error) {
	if err := r.check(id); err != nil {
		return nil, err
	}
	return journal.Open(r.folder(id))
}

// Manifest reads what a run was.
func (r Runs) Manifest(id string) (manifest.Manifest, error) {
	if err := r.check(id); err != nil {
		return manifest.Manifest{}, err
	}
	m, err := manifest.Read(r.folder(id))
	if err != nil {
		return m, fmt.Errorf("run %s: %w", id, err)
	}
	return m, nil
}

// check refuses what names no run, or one that was killed before it had a manifest.
func (r Runs) check(id string) error {
	if !IsID(id) || !manifest.Has(r.folder(id)) {
		return r.missing(id)
	}
	return nil
}

func (r Runs) missing(id string) error {
	if !IsID(id) {
		return fmt.Errorf("%q is not the name of a run, such as %s", id, newID(123))
	}
	return fmt.Errorf("there is no run %s in %s: it was removed, or belongs to another state folder", id, r.dir)
}

// Newest returns the newest run of a pipeline that left something to do; false:
// there is none.
func (r Runs) Newest(file, pipeline string) (manifest.Manifest, bool) {
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		m, err := r.Manifest(id)
		if err != nil || m.File != file || m.Pipeline != pipeline || journal.Busy(r.folder(id)) {
			continue
		}
		if end := r.End(id); end.Unfinished() || end.Failed > 0 {
			return m, true
		}
	}
	return manifest.Manifest{}, false
}

// NothingLeft is the error of who looks for the newest run to resume, and finds none: of a file and pipeline,
// or of any where file is empty. A run that another process is at work on left something, but not yet.
func (r Runs) NothingLeft(file, pipeline string) error {
	of := ""
	if file != "" {
		of = " of " + file
	}
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		m, _ := r.Manifest(id)
		if journal.Busy(r.folder(id)) && (file == "" || m.File == file && m.Pipeline == pipeline) {
			return fmt.Errorf("another process is at work on run %s, and no other run%s in %s left anything to do: wait until it has ended", id, of, r.dir)
		}
	}
	return fmt.Errorf("no run%s in %s left anything to do; a run without Options.Resume begins anew", of, r.dir)
}

// End returns how a run ended; nil: it was cut off, or is at work.
func (r Runs) End(id string) *journal.Totals { return journal.End(r.folder(id)) }

// LastOf names the newest run of a pipeline; false: there is none.
func (r Runs) LastOf(file, pipeline string) (string, bool) {
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		if m, err := r.Manifest(id); err == nil && m.File == file && m.Pipeline == pipeline {
			return id, true
		}
	}
	return "", false
}

// Elsewhere names the run whose items other machines answer under an ID of theirs; false: there is none here.
func (r Runs) Elsewhere(cluster string) (string, bool) {
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		if m, err := r.Manifest(id); err == nil && m.Cluster != nil && m.Cluster.Run == cluster {
			return id, true
		}
	}
	return "", false
}

// Last names the newest run of all; false: there is none.
func (r Runs) Last() (string, bool) {
	ids, _ := r.list()
	if len(ids) == 0 {
		return "", false
	}
	return ids[len(ids)-1], true
}
