//go:build !linux

package document

// limit does nothing: other systems have no limit that ignores memory that Go only reserves.
func limit(uint64) {}
