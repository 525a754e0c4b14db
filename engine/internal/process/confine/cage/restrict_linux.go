package cage

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restrict limits this thread, and what it starts, to what the spec allows. doing is the step that
// failed.
func restrict(s *Spec, kernel *Kernel, r reach, port int) (doing string, err error) {
	if err := limit(s, kernel); err != nil {
		return "limit it", err
	}
	if kernel.Landlock > 0 {
		if err := landlock(kernel, r, openPorts(port, s.Local)); err != nil {
			return "confine it by Landlock", err
		}
	}
	if kernel.Filter, err = filter(kernel, families(s)); err != nil {
		return "filter its system calls", err
	}
	return "", nil
}

// limit disables core dumps, which would contain secrets, and bounds files and processes. It drops
// the privileges of root and of the creator of a user namespace, also for programs that the thread
// executes later.
func limit(s *Spec, kernel *Kernel) error {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0}
	if s.Disk > 0 {
		limits[unix.RLIMIT_FSIZE] = uint64(s.Disk)
	}
	if kernel.Namespaces && kernel.Landlock >= LandlockRefer && s.Processes > 0 {
		limits[unix.RLIMIT_NPROC] = uint64(s.Processes) // such kernels count in each namespace, older ones all processes of the user
	}
	for which, n := range limits {
		var old unix.Rlimit
		if err := unix.Getrlimit(which, &old); err != nil {
			return err
		}
		n = min(n, old.Max)
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
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
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// The rights to files and to folders.
const (
	readFile    = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	writeFile   = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	readFolder  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	connect     = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	everything  = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX<<1 - 1
	writeFolder = everything &^ connect &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockVersion returns the version of the kernel's Landlock interface; 0: it has none.
func landlockVersion() int {
	version, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != 0 {
		return 0
	}
	return int(version)
}

// landlock limits this thread to the files of r, to signals between its own processes, and, unless
// its network is isolated, to TCP connections to the given ports of any address.
func landlock(kernel *Kernel, r reach, ports []uint16) error {
	all := unix.LandlockRulesetAttr{Handled_access_fs: everything}
	for version, right := range map[int]uint64{
		LandlockRefer: unix.LANDLOCK_ACCESS_FS_REFER, LandlockTruncate: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		LandlockIoctl: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, LandlockUnix: connect,
	} {
		if kernel.Landlock < version {
			all.Handled_access_fs &^= right
		}
	}
	if kernel.Landlock >= LandlockTCP && !kernel.Namespaces {
		all.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if kernel.Landlock >= LandlockUDP && !kernel.Namespaces {
		all.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	}
	if kernel.Landlock >= LandlockScope {
		all.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&all)), unsafe.Sizeof(all), 0)
	if failed != 0 {
		return failed
	}
	defer func() { _ = unix.Close(int(fd)) }()
	for _, p := range r.places {
		if err := allowPath(fd, p, all.Handled_access_fs); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	if all.Handled_access_net != 0 {
		for _, port := range ports {
			rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
			const netPort = 2 // the kind of the rule
			if _, _, err := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, netPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); err != 0 {
				return err
			}
		}
	}
	if _, _, err := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); err != 0 {
		return err
	}
	return nil
}

// allowPath adds a place to a set of rules.
func allowPath(rules uintptr, p place, handled uint64) error {
	var access uint64
	switch {
	case p.folder && p.write:
		access = writeFolder
	case p.folder:
		access = readFolder
	case p.device:
		access = readFile | writeFile | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case p.write:
		access = readFile | writeFile
	default:
		access = readFile
	}
	if p.socket {
		access |= connect
	}
	fd, err := unix.Open(p.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT { //nolint:errorlint // as the system call returns it
		return nil // it has been removed
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & handled, Parent_fd: int32(fd)}
	if _, _, err := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); err != 0 {
		return err
	}
	return nil
}
