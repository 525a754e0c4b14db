package support

import (
	"os"

	"golang.org/x/sys/unix"
)

// Map maps a file into memory, read-only. It returns the bytes, and a function that unmaps them. The
// memory belongs to the page cache, which processes share, and only pages in use take space. The file
// must not be changed in place, only replaced.
func Map(f *os.File) (data []byte, unmap func(), err error) {
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

// Unread releases the pages of a mapped file that were read into this process's memory. They are read
// again on the next access.
func Unread(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) } // it is advice
