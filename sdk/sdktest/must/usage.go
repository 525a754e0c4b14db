//go:build unix

package must

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Worked is the processor time that this process has used, or with syscall.RUSAGE_CHILDREN its children that have
// ended. Unlike the clock, it does not count what else the machine does.
func Worked(t testing.TB, who int) time.Duration {
	t.Helper()
	var used syscall.Rusage
	Do(t, syscall.Getrusage(who, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Status reads /proc/self/status, which only Linux has; elsewhere it skips the test.
func Status(t testing.TB) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("this system does not say how much memory a process takes")
	}
	return string(status)
}

// Size is an entry of a status, in bytes: VmHWM is the most memory that the process has held, VmRSS what it holds.
func Size(t testing.TB, status, entry string) int {
	t.Helper()
	kib := 0
	_, rest, _ := strings.Cut(status, entry+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("no %s: %v", entry, err)
	}
	return kib << 10
}
