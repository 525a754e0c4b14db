//go:build !linux

package document

// limitMemory does nothing: there is no limit here that spares what Go only
// reserves.
func limitMemory(uint64) {}
