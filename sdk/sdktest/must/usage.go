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

// Worked returns the processor time of this process, or with syscall.RUSAGE_CHILDREN, of its children
// that have ended. Unlike the clock, it does not count other work of the machine.
func Worked(t testing.TB, who int) time.Duration {
	t.Helper()
	var used syscall.Rusage
	Do(t, syscall.Getrusage(who, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Linear fails a test if a size sixteen times as large takes 64 times as long; quadratic time would
// take 256 times as long. What a function does once, from some size on, may make it 40. Absolute times
// say more about the machine, so the size grows from n until do takes some milliseconds.
func Linear(t testing.TB, n int, do func(n int)) {
	t.Helper()
	NoRace(t)
	takes := func(n int) time.Duration {
		began := Worked(t, syscall.RUSAGE_SELF)
		do(n)
		return Worked(t, syscall.RUSAGE_SELF) - began
	}
	once := takes(n)
	for ; once < 2*time.Millisecond; once = takes(n) {
		n *= 2
	}
	var ratios []float64
	for range 3 { // other work in this process may disturb a try
		ratios = append(ratios, takes(16*n).Seconds()/once.Seconds())
		if ratios[len(ratios)-1] < 64 {
			return
		}
		once = takes(n)
	}
	t.Errorf("size %d takes %v, and sixteen times as much %.1f times as long", n, once, ratios)
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

// Size returns an entry of a status, in bytes. VmHWM is the peak memory of the process, and VmRSS its
// current memory.
func Size(t testing.TB, status, entry string) int {
	t.Helper()
	kib := 0
	_, rest, _ := strings.Cut(status, entry+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("no %s: %v", entry, err)
	}
	return kib << 10
}
