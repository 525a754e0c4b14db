package support

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// This file writes everything to the disk that must not be lost. A simulation can tear, lose or
// refuse what is written, synced and renamed here (Watch). Elsewhere, the functions are the system's
// own.

// File is a file whose changes the Watcher of its folder sees.
type File struct {
	*os.File
	watcher Watcher // nil: nobody watches
	unlock  func()  // unlocks the file that is locked in its place; nil: there is none
}

// OpenFile is os.OpenFile.
func OpenFile(path string, flags int, perm fs.FileMode) (*File, error) {
	return opened(path, func() (*os.File, error) { return os.OpenFile(path, flags, perm) })
}

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (*File, error) {
	return opened(filepath.Join(dir, pattern), func() (*os.File, error) { return os.CreateTemp(dir, pattern) })
}

func opened(path string, open func() (*os.File, error)) (*File, error) {
	w := watcherOf(path)
	var f *os.File
	err := watched(w, Change{Op: OpOpen, Path: path}, func(Change) (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{File: f, watcher: w}, nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) { return f.write(b, f.File.Write) }

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(b []byte, at int64) (int, error) {
	return f.write(b, func(b []byte) (int, error) { return f.File.WriteAt(b, at) })
}

func (f *File) write(b []byte, write func([]byte) (int, error)) (n int, err error) {
	err = watched(f.watcher, Change{OpWrite, f.Name(), "", b}, func(c Change) (err error) {
		n, err = write(c.Data)
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

// Op is a kind of change to a file.
type Op string

// Values of Op.
const (
	OpOpen       Op = "open" // perhaps creates the file
	OpWrite      Op = "write"
	OpTruncate   Op = "truncate"
	OpSync       Op = "sync"
	OpRename     Op = "rename"
	OpSyncFolder Op = "sync folder"
)

// Change is a change that is about to happen to a file.
type Change struct {
	Op   Op
	Path string
	To   string // of a rename
	Data []byte // to write; a watcher may write less, and return an error
}

// A Watcher sees every change to the files of a folder, and may refuse it.
type Watcher interface {
	// Change calls do, or refuses the change. Several goroutines may call it at once, with locks held.
	Change(c Change, do func(Change) error) error
}

var (
	watchers sync.Map     // Watcher by folder; the folder's name ends with a separator
	watching atomic.Int32 // number of watchers: 0 in every program
)

// Watch puts a watcher in front of the files below a folder that are opened from now on, until stop
// is called. Only simulations do this.
func Watch(dir string, w Watcher) (stop func()) {
	dir = filepath.Clean(dir) + string(filepath.Separator)
	watchers.Store(dir, w)
	watching.Add(1)
	return sync.OnceFunc(func() {
		watchers.CompareAndDelete(dir, w)
		watching.Add(-1)
	})
}

func watcherOf(path string) (w Watcher) {
	if watching.Load() == 0 {
		return nil
	}
	path = filepath.Clean(path) + string(filepath.Separator)
	watchers.Range(func(dir, one any) bool {
		if strings.HasPrefix(path, dir.(string)) {
			w = one.(Watcher)
		}
		return w == nil
	})
	return w
}

func watched(w Watcher, c Change, do func(Change) error) error {
	if w == nil {
		return do(c)
	}
	return w.Change(c, do)
}
