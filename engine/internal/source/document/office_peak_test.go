//go:build linux

package document

import (
	"syscall"
	"testing"
)

// peak reports the most memory that a process had that read a file, and fails where that is more
// than it may be.
func peak(t *testing.T) {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		t.Fatal(err)
	}
	t.Logf("at most %d MB were taken", used.Maxrss>>10)
	if used.Maxrss<<10 > memory+memory/8 { // the limit is of data: stacks and what is mapped of files come on top
		t.Errorf("a process had %d MB", used.Maxrss>>10)
	}
}
