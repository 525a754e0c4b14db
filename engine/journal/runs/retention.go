package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/sdk/support"
)

// DefaultRuns is how many finished runs are kept where Retention does not say it.
const DefaultRuns = 20

// Retention says which finished runs are kept: those that are within all of its bounds.
type Retention struct {
	Runs  int           // the newest; 0: DefaultRuns
	Age   time.Duration // since they began; 0: any
	Bytes int64         // of all of them; 0: any
}

// Removed is a finished run that was removed.
type Removed struct {
	ID     string
	Tokens uint64 // that its models took: it cost something
	Failed int    // items that failed
}

// prune removes finished runs, oldest first. One that owes something stays until it is
// resumed or removed by name, and so does the newest.
func (r Runs) prune(keep Retention) (removed []Removed, err error) {
	type run struct {
		id    string
		end   *journal.Totals
		began time.Time
		size  int64
	}
	var finished []run
	var bytes int64
	var latest time.Time
	ids, _ := r.list()
	for _, id := range ids {
		m, err := manifest.Read(r.folder(id))
		if err != nil {
			continue // nobody knows what it was
		}
		if m.Started.After(latest) { // a run is no older than those before it
			latest = m.Started
		}
		end := r.End(id)
		if end.Owes() {
			continue
		}
		one := run{id: id, end: end, began: latest}
		if keep.Bytes > 0 {
			one.size = journal.Size(r.folder(id))
		}
		bytes += one.size
		finished = append(finished, one)
	}
	for i, old := range finished[:max(len(finished)-1, 0)] {
		tooMany := len(finished)-i > cmp.Or(keep.Runs, DefaultRuns)
		tooOld := keep.Age > 0 && r.clock().Sub(old.began) > keep.Age
		tooLarge := keep.Bytes > 0 && bytes > keep.Bytes
		if !tooMany && !tooOld && !tooLarge {
			break // those after it are newer
		}
		switch err := r.Remove(old.id); {
		case errors.Is(err, support.ErrBusy):
			continue
		case err != nil:
			return removed, fmt.Errorf("remove an old run: %w", err)
		}
		bytes -= old.size
		removed = append(removed, Removed{old.id, old.end.InputTokens + old.end.OutputTokens, old.end.Failed})
	}
	return removed, nil
}

// Remove removes a run. The error is support.ErrBusy where a process is at work on it.
func (r Runs) Remove(id string) error {
	dir := r.folder(id)
	if _, err := os.Stat(dir); err != nil || !IsID(id) {
		return r.missing(id)
	}
	if err := r.mark(number(id)); err != nil {
		return err
	}
	f, err := support.OpenLock(filepath.Join(dir, journal.File), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // it was killed as it began
		return os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	return errors.Join(os.RemoveAll(dir), f.Close())
}
