package integrity

import (
	"fmt"
	"hash/crc32"
)

// Error is the error for bytes that a commit vouches for and that changed since.
type Error struct {
	Path   string
	Offset int64
	what   string
}

func (d *Error) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (%s): restore it from a copy, or delete its folder and build the knowledge again",
		d.Path, d.Offset, d.what)
}

// Damage returns the error for a file, with the offset in it and what is wrong there.
func Damage(path string, offset int64, what string) error { return &Error{path, offset, what} }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum continues a CRC-32C, 0 at first, with more bytes.
func Checksum(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
