//go:build unix

package support_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

func open(t *testing.T, path string, flags int) *support.File {
	t.Helper()
	f, err := support.OpenLock(path, os.O_WRONLY|flags, 0o600)
	must.Do(t, err)
	return f
}

func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := support.OpenLock(path, os.O_RDWR, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	first := open(t, path, os.O_CREATE)
	if _, err := support.OpenLock(path, os.O_WRONLY, 0); !errors.Is(err, support.ErrBusy) {
		t.Errorf("a second writer: %v", err)
	}
	must.Do(t, first.Close())
	second := open(t, path, 0)
	defer second.Close()
	must.Do(t, os.Rename(path, path+".new"))
	if same, err := support.SameFile(path, second); same || err != nil {
		t.Errorf("a renamed file: %v, %v", same, err)
	}
	defer open(t, path, os.O_CREATE).Close() // the name is free, the renamed file stays locked
	if _, err := support.OpenLock(path+".new", os.O_WRONLY, 0); !errors.Is(err, support.ErrBusy) {
		t.Errorf("a second writer of a renamed file: %v", err)
	}
}

// A process that is just starting has a copy of every open file: CloseLock does not wait for the end
// of the copy.
func TestCloseUnlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path, os.O_CREATE)
	started, err := syscall.Dup(int(f.Fd()))
	must.Do(t, err)
	defer func() { _ = syscall.Close(started) }()
	must.Do(t, support.CloseLock(f))
	must.Do(t, support.CloseLock(open(t, path, 0)))
	if err := support.CloseLock(f); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a file that is closed: %v", err)
	}
}

// TestNameGoesToAnotherFile: writers take turns on one name, and each renames its file away. No lock
// may be held on a file that the name has left.
func TestNameGoesToAnotherFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for turns := 0; turns < 50; {
				f, err := support.OpenLock(path, os.O_WRONLY|os.O_CREATE, 0o600)
				if errors.Is(err, support.ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				turns++
				if info, err := f.Stat(); err != nil || info.Size() != 0 {
					t.Error("the file is one that another writer has completed")
				}
				_, err = f.WriteString("complete")
				if err := errors.Join(err, os.Rename(path, filepath.Join(dir, "complete")), f.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

// TestReaders: several may read, but nobody while one writes.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	writer := open(t, path, os.O_CREATE)
	if _, err := support.OpenSharedLock(path, os.O_RDONLY); !errors.Is(err, support.ErrBusy) {
		t.Errorf("a reader beside a writer: %v", err)
	}
	must.Do(t, writer.Close())
	for range 2 {
		reader, err := support.OpenSharedLock(path, os.O_RDONLY)
		must.Do(t, err)
		defer reader.Close()
	}
	if _, err := support.OpenLock(path, os.O_WRONLY, 0); !errors.Is(err, support.ErrBusy) {
		t.Errorf("a writer beside readers: %v", err)
	}
}
