//go:build linux

package document

import (
	"syscall"
	"testing"
)

// peak reports the peak memory of a process that read a file, and fails if it exceeds the limit.
func peak(t *testing.T) {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		t.Fatal(err)
	}
	t.Logf("at most %d MB were taken", used.Maxrss>>10)
	if used.Maxrss<<10 > memory+memory/8 { // the limit is for data only: stacks and mapped files are additional
		t.Errorf("a process had %d MB", used.Maxrss>>10)
	}
}
