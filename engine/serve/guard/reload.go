package guard

import (
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
)

// watched is what files hold, read again when one of them has changed. Where they cannot
// be read any more, what they held before stays in use.
type watched[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu       sync.Mutex
	seen     []fs.FileInfo
	reported bool // that they cannot be read
	value    T
}

// watch reads the files for the first time.
func watch[T any](log *slog.Logger, read func() (T, error), paths ...string) (*watched[T], error) {
	w := &watched[T]{paths: paths, read: read, log: log}
	var err error
	if w.seen, err = w.look(); err == nil {
		w.value, err = read()
	}
	return w, err
}

// look follows links: mounted secrets are replaced by changing one.
func (w *watched[T]) look() ([]fs.FileInfo, error) {
	var all []fs.FileInfo
	for _, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// get returns what the files hold now. It costs a stat of each.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, err := w.look()
	if err == nil && slices.EqualFunc(w.seen, now, unchanged) {
		return w.value
	}
	var value T
	if err == nil {
		value, err = w.read()
	}
	if err != nil {
		if !w.reported {
			w.log.Error("a file that changed cannot be used, and what it held before stays in use", "error", err)
		}
		w.seen, w.reported = nil, true
		return w.value
	}
	w.seen, w.value, w.reported = now, value, false
	w.log.Info("a file that changed was read again", "file", w.paths[0])
	return value
}

func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
