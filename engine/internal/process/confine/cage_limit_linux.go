package confine

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// limit leaves no core dump, which would hold secrets, takes away what root or the maker
// of a user namespace may do beyond others, and keeps it away from whatever is executed.
func limit() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	for capability := range uintptr(64) {
		// Without the right to, there is nothing to drop.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return err
	}
	// Whatever else is open here ends with exec.
	err := unix.CloseRange(Pipe, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		err = nil // an older kernel; Go and the keeper open nothing without that mark
	}
	return err
}
