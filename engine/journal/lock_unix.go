//go:build unix

package journal

import (
	"os"
	"syscall"
)

// lock makes this process the file's only writer. The lock ends with the
// process, however that ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
