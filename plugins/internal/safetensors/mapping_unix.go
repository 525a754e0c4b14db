//go:build unix

package safetensors

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int64) (data []byte, ok bool) {
	if size <= 0 || int64(int(size)) != size {
		return nil, false
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return data, err == nil // some file systems cannot
}

func unmapFile(data []byte) { _ = unix.Munmap(data) } // what cannot be unmapped stays

func forgetPages(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) } // no more than advice
