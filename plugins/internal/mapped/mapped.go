// Package mapped maps files into memory, read-only: the memory is that of the page cache, which
// processes share, and only pages in use take space. The files must not be changed in place, only
// replaced.
package mapped

import (
	"os"

	"golang.org/x/sys/unix"
)

// File returns the bytes of a file without reading them, and what lets go of them.
func File(f *os.File) (data []byte, unmap func(), err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() == 0 {
		return nil, func() {}, nil // cannot be mapped
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, &os.PathError{Op: "map", Path: f.Name(), Err: err}
	}
	return data, func() { _ = unix.Munmap(data) }, nil // what cannot be unmapped stays
}

// Forget takes what was read of a file out of this process's memory. It is read again where it is
// looked at.
func Forget(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) } // it is advice
