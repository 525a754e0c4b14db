// Package must ends a test at an unexpected error, reports values that differ, and makes folders that
// can be removed afterwards. It imports nothing of racflow, so that the tests of every package can
// use it.
package must

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Do ends a test at an error.
func Do(t testing.TB, err error) {
	if err != nil { // before Helper, which would slow benchmarks down
		t.Helper()
		t.Fatal(err)
	}
}

// Get returns the value of a call, and ends the test at its error: must.Get(os.Getwd())(t).
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Equal reports how two values differ. The test continues.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if d := cmp.Diff(want, got, options...); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TempDir is t.TempDir for tests that make folders which their owner may not write to: only root
// could remove these.
func TempDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return dir
}
