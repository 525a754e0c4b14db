package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk/lock"
)

// State is what a run has come to.
type State string

// States of a run. Resuming does something for those that are Unfinished or have
// FailedItems.
const (
	Complete    State = "complete"
	Unfinished  State = "unfinished"
	FailedItems State = "failed items"
	AtWork      State = "at work"
)

// Info describes a run.
type Info struct {
	ID       string
	Manifest Manifest // zero where the run was killed as it began
	Answered int      // items that resuming would not ask again
	State    State
}

// List describes all runs, oldest first.
func (r Runs) List() []Info {
	var all []Info
	for _, id := range r.list() {
		all = append(all, r.info(id))
	}
	return all
}

func (r Runs) info(id string) Info {
	m, _ := r.Manifest(id) // a run without one is listed, so that it can be removed
	info, end := Info{ID: id, Manifest: m, State: Unfinished}, r.End(id)
	switch {
	case end == nil && r.busy(id):
		info.State = AtWork
	case end.Unfinished():
	case end.Failed > 0:
		info.State = FailedItems
	default:
		info.State = Complete
	}
	if end != nil && end.Complete {
		info.Answered = end.Items - end.Failed - end.Provisional
	} else if f, err := os.Open(filepath.Join(r.dir, id, journalFile)); err == nil {
		known, _, _ := scan(f) // what cannot be read is not known
		info.Answered = len(known)
		_ = f.Close() // it was only read
	}
	return info
}

// Unfinished counts the runs that stay until they are resumed or removed, those
// at work included.
func (r Runs) Unfinished() int {
	n := 0
	for _, id := range r.list() {
		if r.End(id).Unfinished() {
			n++
		}
	}
	return n
}

// busy reports whether a process is at work on the run.
func (r Runs) busy(id string) bool {
	f, err := lock.Open(filepath.Join(r.dir, id, journalFile), os.O_RDWR, 0)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return errors.Is(err, lock.ErrBusy)
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
