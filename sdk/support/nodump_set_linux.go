package support

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NoDump makes this process unreadable, unless NoDumpVariable forbids it. It works only on Linux.
func NoDump() error {
	if os.Getenv(NoDumpVariable) == "1" {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep other processes of this user out of this one: %w", err)
	}
	return nil
}
