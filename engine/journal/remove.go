package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/sdk/lock"
)

// kept is how many finished runs are kept.
const kept = 20

// prune removes the oldest finished runs beyond those that are kept. An
// unfinished one stays until it is resumed or removed by hand.
func (r Runs) prune() error {
	finished := slices.DeleteFunc(r.list(), func(id string) bool { return r.End(id).Unfinished() })
	for _, id := range finished[:max(len(finished)-kept, 0)] {
		if err := r.Remove(id); err != nil && !errors.Is(err, lock.ErrBusy) {
			return fmt.Errorf("remove an old run: %w", err)
		}
	}
	return nil
}

// Remove removes a run. The error is lock.ErrBusy where a process is at work on it.
func (r Runs) Remove(id string) error {
	dir := filepath.Join(r.dir, id)
	if _, err := os.Stat(dir); err != nil || !IsID(id) {
		return r.missing(id)
	}
	f, err := lock.Open(filepath.Join(dir, journalFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // it was killed as it began
		return os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	return errors.Join(os.RemoveAll(dir), f.Close())
}

func (r Runs) missing(id string) error {
	if !IsID(id) {
		return fmt.Errorf("%q is not the name of a run, such as 20260131-235959-0a1b2c", id)
	}
	return fmt.Errorf("there is no run %s in %s: it was removed, or belongs to another state folder", id, r.dir)
}
