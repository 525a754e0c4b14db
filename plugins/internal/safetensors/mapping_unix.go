//go:build unix

package safetensors

import (
	"fmt"
	"os"
	"time"

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

// identify tells which file this is, and when its content or owner last changed. Nobody can set
// that time.
func identify(f *os.File) (identity string, changed time.Time, ok bool) {
	var stat unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &stat)
	return fmt.Sprint(stat.Dev, stat.Ino, stat.Size), time.Unix(stat.Ctim.Unix()), err == nil
}
