package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

// RunState is the state of a run.
type RunState string

// States of a run. Resuming changes only runs that are Unfinished or have FailedItems.
const (
	Complete    RunState = "complete"
	Unfinished  RunState = "unfinished"
	FailedItems RunState = "failed items"
	AtWork      RunState = "at work"
	Damaged     RunState = "damaged" // its manifest cannot be read
)

// RunInfo describes a run.
type RunInfo struct {
	ID       string
	Manifest Manifest // zero if the run was killed as it began, or is Damaged
	Answered int      // items that a resumed run would not answer again
	Items    int      // of the input, up to the limit; 0: unknown, because the run did not reach the end
	Tokens   uint64   // input and output tokens of the answers
	Cost     float64  // of these tokens, by the prices in the file
	State    RunState
	End      *Totals // nil: it was cut off, or is still at work
	Bytes    int64   // of its files
}

// List describes all runs, oldest first.
func (r Runs) List() []RunInfo {
	var all []RunInfo
	ids, _ := r.list()
	for _, id := range ids {
		all = append(all, r.Info(id))
	}
	return all
}

// Info describes a run. A run that was killed as it began is Unfinished, so that it can be removed.
func (r Runs) Info(id string) RunInfo {
	dir := r.folder(id)
	m, err := ReadManifest(dir)
	info := RunInfo{ID: id, Manifest: m, State: Unfinished, End: End(dir), Bytes: size(dir)}
	switch end := info.End; {
	case err != nil && hasManifest(dir):
		info.State = Damaged
	case end == nil && busy(dir):
		info.State = AtWork
	case end.Unfinished():
	case end.Failed > 0:
		info.State = FailedItems
	default:
		info.State = Complete
	}
	if end := info.End; end != nil && end.Complete {
		info.Answered, info.Items = end.Items-end.Failed-end.Provisional, end.Items+end.Left
		info.Tokens, info.Cost = end.InputTokens+end.OutputTokens, end.Cost
	} else {
		t := count(dir)
		info.Answered, info.Tokens, info.Cost = t.Items, t.Usage.InputTokens+t.Usage.OutputTokens, t.Cost
	}
	return info
}

// Unfinished counts the runs that stay until they are resumed or removed, including runs that a
// process works on.
func (r Runs) Unfinished() int {
	n := 0
	ids, _ := r.list()
	for _, id := range ids {
		if r.End(id).owes() {
			n++
		}
	}
	return n
}

// defaultRuns is how many finished runs are kept if Retention.Runs is 0.
const defaultRuns = 20

// Retention limits the finished runs that are kept: a run must be within every limit.
type Retention struct {
	Runs  int           // number of newest runs; 0: defaultRuns
	Age   time.Duration // since the start; 0: any
	Bytes int64         // of all kept runs; 0: any
}

// prune removes finished runs, oldest first. Unfinished runs (Totals.owes) and the newest finished
// run stay.
func (r Runs) prune(keep Retention) (removed []string, err error) {
	type run struct {
		id    string
		began time.Time
		size  int64
	}
	var finished []run
	var bytes int64
	var latest time.Time
	ids, _ := r.list()
	for _, id := range ids {
		m, err := ReadManifest(r.folder(id))
		if err != nil {
			continue // the manifest cannot be read
		}
		if m.Started.After(latest) { // a run is no older than earlier runs
			latest = m.Started
		}
		if r.End(id).owes() {
			continue
		}
		one := run{id: id, began: latest}
		if keep.Bytes > 0 {
			one.size = size(r.folder(id))
		}
		bytes += one.size
		finished = append(finished, one)
	}
	for i, old := range finished[:max(len(finished)-1, 0)] {
		tooMany := len(finished)-i > cmp.Or(keep.Runs, defaultRuns)
		tooOld := keep.Age > 0 && r.clock().Sub(old.began) > keep.Age
		tooLarge := keep.Bytes > 0 && bytes > keep.Bytes
		if !tooMany && !tooOld && !tooLarge {
			break // later runs are newer
		}
		switch err := r.Remove(old.id); {
		case errors.Is(err, support.ErrBusy):
			continue
		case err != nil:
			return removed, fmt.Errorf("remove an old run: %w", err)
		}
		bytes -= old.size
		removed = append(removed, old.id)
	}
	return removed, nil
}

// Remove removes a run. The error is support.ErrBusy if a process works on it.
func (r Runs) Remove(id string) error {
	dir := r.folder(id)
	if _, err := os.Stat(dir); err != nil || !IsRunID(id) {
		return r.missing(id)
	}
	if err := r.mark(number(id)); err != nil {
		return err
	}
	f, err := support.OpenLock(filepath.Join(dir, File), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // the run was killed as it began
		return os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	return errors.Join(os.RemoveAll(dir), f.Close())
}

// Writing returns the newest run that ended early and was writing this file, given by its absolute
// path; false: there is none.
func (r Runs) Writing(file string) (Manifest, bool) {
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		if end := r.End(id); end != nil && end.Complete {
			continue
		}
		if m, err := r.Manifest(id); err == nil && m.Output == file {
			return m, true
		}
	}
	return Manifest{}, false
}
