//go:build unix

package support

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestLockBeside: the substitute for a file's lock keeps others out as the file's own lock would,
// whatever the file's name is meanwhile, and leaves nothing behind.
func TestLockBeside(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "file")
	lock := func(path string, how int) (*File, error) {
		f := must.Get(OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))(t)
		return f, f.lockBeside(how)
	}
	for _, test := range []struct {
		first, second int
		busy          bool
	}{{syscall.LOCK_EX, syscall.LOCK_EX, true}, {syscall.LOCK_EX, syscall.LOCK_SH, true}, {syscall.LOCK_SH, syscall.LOCK_EX, true}, {syscall.LOCK_SH, syscall.LOCK_SH, false}} {
		first, err := lock(path, test.first)
		must.Do(t, err)
		must.Do(t, os.Rename(path, path+".new"))
		second, err := lock(path+".new", test.second)
		if errors.Is(err, ErrBusy) != test.busy || !test.busy && err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		other, err := lock(path, syscall.LOCK_EX)
		must.Do(t, err)
		must.Do(t, errors.Join(first.Close(), second.Close(), other.Close(), os.Rename(path+".new", path)))
	}
	last, err := lock(path, syscall.LOCK_EX)
	must.Do(t, err)
	must.Do(t, CloseLock(last))
	if left := must.Get(os.ReadDir(os.TempDir()))(t); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
