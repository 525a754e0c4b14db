//go:build !unix

package rerank

import "time"

var start = time.Now()

// processorTime is the time since the process began, in seconds: one text is computed on one
// core.
func processorTime() float64 { return time.Since(start).Seconds() }
