package cache

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

// Limits bound what is kept; 0: it is not bounded.
type Limits struct {
	Bytes int64         // of all files
	Age   time.Duration // since it was stored or, of vectors, used
}

// Before is the time before which an age is too old.
func (l Limits) before() time.Time {
	if l.Age <= 0 {
		return time.Unix(0, math.MinInt64)
	}
	return time.Now().Add(-l.Age)
}

// Trim removes from the response cache in a folder what is too old and, where the rest is
// too large, what was stored first. Then it leaves a tenth of the limit free, since each time
// it rewrites files. What a running process writes stays.
func Trim(dir string, l Limits) (Cleared, error) {
	before := l.before()
	paths, err := answers.list(dir)
	if err != nil || len(paths) == 0 {
		return Cleared{}, err
	}
	if sizeOf(paths) > l.Bytes && l.Bytes > 0 {
		if at := time.Unix(0, stays(paths, l.Bytes-l.Bytes/10)); at.After(before) {
			before = at
		}
	} else if l.Age <= 0 {
		return Cleared{}, nil
	}
	return Clear(dir, before)
}

// stays is the time of the oldest record that stays where the newest ones may have so many
// bytes.
func stays(paths []string, room int64) int64 {
	var records []record
	for _, path := range paths {
		if f, err := answers.openFile(path); err == nil {
			_ = f.follow(func(r record) { records = append(records, record{at: r.at, length: r.length}) }) // up to a damage
			_ = f.close()                                                                                  // it was only read
		}
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(b.at, a.at) })
	for _, r := range records {
		if room -= headerSize + int64(r.length); room < 0 {
			return r.at + 1
		}
	}
	return math.MinInt64
}

func sizeOf(paths []string) (size int64) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// TrimVectors removes vectors of all embedders below a folder: files that no build has
// written to or read from for too long and, where the rest is too large, those that were
// used least recently. What a running process writes stays.
func TrimVectors(root string, l Limits) (Cleared, error) {
	type segment struct {
		path string
		size int64
		used time.Time
	}
	var c Cleared
	var all []segment
	var errs []error
	size := int64(0)
	for _, dir := range embedders(root) {
		paths, err := vectors.list(dir)
		errs = append(errs, err)
		for _, path := range paths {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // another process has removed it
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			all, size = append(all, segment{path, info.Size(), info.ModTime()}), size+info.Size()
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return a.used.Compare(b.used) })
	before, left := l.before(), len(all)
	for _, s := range all {
		if (l.Bytes <= 0 || size <= l.Bytes) && !s.used.Before(before) {
			continue
		}
		removed, err := c.remove(s.path)
		if errs = append(errs, err); removed {
			size -= s.size
			left--
		}
	}
	if left == 0 {
		forgetHits(root)
	}
	return c, errors.Join(errs...)
}

// remove removes a file of vectors, unless a process writes it.
func (c *Cleared) remove(path string) (bool, error) {
	f, err := support.OpenLock(path, os.O_RDWR, 0)
	switch {
	case errors.Is(err, support.ErrBusy):
		c.Busy++
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	defer f.Close() //nolint:errcheck // it was only read; this gives the lock back
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	count := 0
	_, _ = vectors.scan(f, path, 0, info.Size(), func(record) { count++ }) // up to a damage
	if err := os.Remove(path); err != nil {
		return false, err
	}
	c.Records, c.Bytes = c.Records+count, c.Bytes+info.Size()
	return true, nil
}
