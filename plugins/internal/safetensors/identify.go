package safetensors

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// identify returns the file's identity, and when its content or owner last changed. Nobody can set that time.
func identify(f *os.File) (identity string, changed time.Time, ok bool) {
	var stat unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &stat)
	return fmt.Sprint(stat.Dev, stat.Ino, stat.Size), time.Unix(stat.Ctim.Unix()), err == nil
}
