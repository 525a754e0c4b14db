//go:build unix

package rerank

import "golang.org/x/sys/unix"

// processorTime is what this process has used so far, in seconds.
func processorTime() float64 {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0 // it cannot fail with these arguments
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
