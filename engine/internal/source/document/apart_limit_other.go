//go:build !linux

package document

// limitMemory does nothing: other systems have no limit that ignores memory that Go only reserves.
func limitMemory(uint64) {}
