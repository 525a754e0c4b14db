//go:build unix

package segment

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget takes what was read of a mapped file out of this process's memory. It is
// read again where it is looked at.
func forget(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) } // it is advice

// MapFile returns the bytes of a file without reading them, and what lets go of
// them.
func MapFile(path string) (b []byte, unmap func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := int(info.Size())
	if size == 0 {
		return nil, func() {}, nil // cannot be mapped
	}
	b, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "map", Path: path, Err: err}
	}
	return b, func() { _ = unix.Munmap(b) }, nil // what cannot be unmapped stays
}
