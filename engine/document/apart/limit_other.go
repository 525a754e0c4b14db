//go:build !linux

package apart

// limitMemory does nothing: there is no limit here that spares what Go only
// reserves.
func limitMemory(uint64) {}
