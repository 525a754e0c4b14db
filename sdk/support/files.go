package support

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// This file is the way to the disk of all that must not be lost: what is written, forced and renamed here is what a
// simulation can tear, lose or refuse (Watch). Elsewhere it is the system's files.

// File is a file whose changes a Watcher of its folder sees.
type File struct {
	*os.File
	watcher Watcher // nil: nobody watches
}

// OpenFile is os.OpenFile.
func OpenFile(path string, flags int, perm fs.FileMode) (*File, error) {
	w := watcherOf(path)
	var f *os.File
	err := watched(w, Change{Op: OpOpen, Path: path}, func(Change) (err error) {
		f, err = os.OpenFile(path, flags, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{f, w}, nil
}

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (*File, error) {
	w := watcherOf(dir)
	var f *os.File
	err := watched(w, Change{Op: OpOpen, Path: filepath.Join(dir, pattern)}, func(Change) (err error) {
		f, err = os.CreateTemp(dir, pattern)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{f, w}, nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (n int, err error) {
	if f.watcher == nil {
		return f.File.Write(b)
	}
	err = f.watcher.Change(Change{OpWrite, f.Name(), "", b}, func(c Change) (err error) {
		n, err = f.File.Write(c.Data)
		return err
	})
	return n, err
}

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(b []byte, at int64) (n int, err error) {
	if f.watcher == nil {
		return f.File.WriteAt(b, at)
	}
	err = f.watcher.Change(Change{OpWrite, f.Name(), "", b}, func(c Change) (err error) {
		n, err = f.File.WriteAt(c.Data, at)
		return err
	})
	return n, err
}

// Truncate changes the size of the file.
func (f *File) Truncate(size int64) error {
	return watched(f.watcher, Change{Op: OpTruncate, Path: f.Name()}, func(Change) error { return f.File.Truncate(size) })
}

// Sync forces the file's content to the disk.
func (f *File) Sync() error {
	return watched(f.watcher, Change{Op: OpSync, Path: f.Name()}, func(Change) error {
		if f.watcher != nil {
			return nil // the watcher is the disk
		}
		return f.File.Sync()
	})
}

// Rename is os.Rename. The new name is on the disk after SyncFolder.
func Rename(from, to string) error {
	return watched(watcherOf(to), Change{Op: OpRename, Path: from, To: to}, func(Change) error { return os.Rename(from, to) })
}

// SyncFolder forces the names in a folder to the disk, if the file system supports that.
func SyncFolder(dir string) error {
	w := watcherOf(dir)
	return watched(w, Change{Op: OpSyncFolder, Path: dir}, func(Change) error {
		if w != nil {
			return nil // the watcher is the disk
		}
		folder, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err = folder.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
		return errors.Join(err, folder.Close())
	})
}

// Op is what is done to a file.
type Op string

// Values of Op.
const (
	OpOpen       Op = "open" // perhaps to create it
	OpWrite      Op = "write"
	OpTruncate   Op = "truncate"
	OpSync       Op = "sync"
	OpRename     Op = "rename"
	OpSyncFolder Op = "sync folder"
)

// Change is something that is about to be done to a file.
type Change struct {
	Op   Op
	Path string
	To   string // of a rename
	Data []byte // to write; a watcher may have less of it written, and return an error
}

// A Watcher stands between a folder and those who change files in it.
type Watcher interface {
	// Change calls do, or refuses the change. Several goroutines may call it at once, with locks held.
	Change(c Change, do func(Change) error) error
}

var (
	watchers atomic.Pointer[[]watch] // nil in every program
	watching sync.Mutex
)

type watch struct {
	dir string // ends with a separator
	Watcher
}

// Watch lets a watcher stand before the files below a folder that are opened from now on, until stop is called. Only
// simulations do this.
func Watch(dir string, w Watcher) (stop func()) {
	one := watch{filepath.Clean(dir) + string(filepath.Separator), w}
	change := func(f func([]watch) []watch) {
		watching.Lock()
		defer watching.Unlock()
		var all []watch
		if now := watchers.Load(); now != nil {
			all = slices.Clone(*now)
		}
		if all = f(all); len(all) == 0 {
			watchers.Store(nil)
			return
		}
		watchers.Store(&all)
	}
	change(func(all []watch) []watch { return append(all, one) })
	return func() {
		change(func(all []watch) []watch {
			return slices.DeleteFunc(all, func(w watch) bool { return w.dir == one.dir })
		})
	}
}

func watcherOf(path string) Watcher {
	all := watchers.Load()
	if all == nil {
		return nil
	}
	path = filepath.Clean(path) + string(filepath.Separator)
	for _, w := range *all {
		if strings.HasPrefix(path, w.dir) {
			return w.Watcher
		}
	}
	return nil
}

func watched(w Watcher, c Change, do func(Change) error) error {
	if w == nil {
		return do(c)
	}
	return w.Change(c, do)
}
