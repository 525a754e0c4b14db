package confine

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// limit disables core dumps, which would contain secrets. It drops the privileges of root and of
// the creator of a user namespace, also for programs that this process executes.
func limit() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	for capability := range uintptr(64) {
		// A process that lacks the permission has nothing to drop.
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
	// Exec closes every other open file.
	err := unix.CloseRange(Pipe, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		err = nil // an older kernel; Go and the keeper set close-on-exec anyway
	}
	return err
}
