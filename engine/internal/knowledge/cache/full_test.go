//go:build linux

package cache

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// fullVariable says that this process is the one with the full disk.
const fullVariable = "RACFLOW_TEST_CACHE_FULL"

// TestFullDisk limits the size of files instead: a write beyond it fails with
// EFBIG where a full disk gives ENOSPC. The limit holds for a whole process, so it
// has one of its own.
func TestFullDisk(t *testing.T) {
	if os.Getenv(fullVariable) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFullDisk$")
		child.Env = append(os.Environ(), fullVariable+"=1")
		if output, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%.2000s", err, output)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	dir := t.TempDir()
	c := openTelling(t, dir, func(string) {})
	var before syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(len(answers.magic)) / 2, Max: before.Max}))
	var errs []error
	for range 3 {
		errs = append(errs, c.Put(sdk.KeyOf("a"), "about", []byte("value")))
	}
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	for _, err := range errs {
		if err == nil {
			t.Error("an answer was kept on a full disk")
		}
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("%d files without an answer are left", len(left))
	}
	put(t, c, "a", "1") // there is room again
	want(t, c, "a", "1")
}
