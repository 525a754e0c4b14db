package cage

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets of a system call's parts in the data of a filter.
const (
	callNumber   = 0
	architecture = 4
	argument     = 16 // 8 bytes each; the lower half comes first on all supported architectures
)

var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// absent lists calls that bypass the other layers. io_uring creates sockets that the filter does not
// see, keys belong to the user, and the next calls inspect the kernel or other processes. The last
// calls create memory that no process maps, so that nobody counts it. clone3 and openat2 have their
// arguments in memory, where the filter cannot look: libraries then use the older call. The plugin
// gets the answer that the system lacks all of these calls.
var absent = []uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_CLONE3, unix.SYS_OPENAT2,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SEMGET, unix.SYS_MSGGET,
}

// watches lists calls that report events on files which the plugin may not read, for a plugin without
// a view of its own. Libraries that find these calls missing look at the files again and again.
var watches = []uint32{unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT}

// check refuses a call whose argument has a value, or does not have it.
type check struct {
	argument uint32
	value    uint32
	not      bool
	mask     uint32 // which bits of the argument count; 0: all 32
	upper    bool   // it looks at the upper 32 bits
}

// noBits refuses a call whose argument has any of some bits.
func noBits(argument, bits uint32) []check {
	return []check{{argument: argument, not: true, mask: bits}}
}

// noSetID refuses a call whose argument is a mode with which a program runs as its owner or group,
// whoever starts it.
func noSetID(argument uint32) []check { return noBits(argument, unix.S_ISUID|unix.S_ISGID) }

// always lists calls that every plugin may make with some arguments only. A user namespace of its
// own would give it rights that it has lost. System V memory need not be mapped, so a segment is less
// than 64 KiB: some databases use a small one as a lock.
var always = map[uint32][]check{
	unix.SYS_FCHMOD: noSetID(1), unix.SYS_FCHMODAT: noSetID(2), unix.SYS_FCHMODAT2: noSetID(2), unix.SYS_OPENAT: noSetID(3), unix.SYS_MKNODAT: noSetID(2),
	unix.SYS_CLONE: noBits(0, unix.CLONE_NEWUSER), unix.SYS_UNSHARE: noBits(0, unix.CLONE_NEWUSER), unix.SYS_SETNS: nil,
	unix.SYS_SHMGET: append(noBits(1, ^uint32(0xffff)), check{argument: 1, not: true, upper: true}),
}

// Checks that refuse other processes than the caller: its own are 0.
var (
	first  = check{argument: 0, not: true}
	second = check{argument: 1, not: true}
)

// outside lists calls that reach other processes, for a plugin without namespaces of processes, of
// SysV IPC and of networks: Landlock does not see connections that begin with data.
var outside = map[uint32][]check{
	unix.SYS_PRLIMIT64: {first}, unix.SYS_SCHED_SETAFFINITY: {first}, unix.SYS_SCHED_SETSCHEDULER: {first},
	unix.SYS_SCHED_SETPARAM: {first}, unix.SYS_SCHED_SETATTR: {first}, unix.SYS_MIGRATE_PAGES: {first}, unix.SYS_MOVE_PAGES: {first},
	unix.SYS_SETPRIORITY:     {{argument: 0, value: unix.PRIO_USER}, second}, // all processes of a user
	unix.SYS_IOPRIO_SET:      {{argument: 0, value: 3}, second},              // the same
	unix.SYS_PROCESS_MADVISE: nil, unix.SYS_PROCESS_MRELEASE: nil, unix.SYS_PIDFD_GETFD: nil, unix.SYS_KCMP: nil,

	unix.SYS_SHMGET: nil, unix.SYS_SHMAT: nil, unix.SYS_SHMCTL: nil, unix.SYS_SEMOP: nil, unix.SYS_SEMTIMEDOP: nil,
	unix.SYS_SEMCTL: nil, unix.SYS_MSGSND: nil, unix.SYS_MSGRCV: nil, unix.SYS_MSGCTL: nil,
	unix.SYS_MQ_OPEN: nil, unix.SYS_MQ_UNLINK: nil,

	unix.SYS_SENDTO: noBits(3, unix.MSG_FASTOPEN), unix.SYS_SENDMSG: noBits(2, unix.MSG_FASTOPEN), unix.SYS_SENDMMSG: noBits(3, unix.MSG_FASTOPEN),
}

// changes lists calls that change files which the plugin may only read, or not even read. It is for a
// plugin whose view of files is not read-only.
var changes = map[uint32][]check{
	unix.SYS_FCHMOD: nil, unix.SYS_FCHMODAT: nil, unix.SYS_FCHMODAT2: nil, unix.SYS_FCHOWN: nil, unix.SYS_FCHOWNAT: nil, unix.SYS_UTIMENSAT: nil,
	unix.SYS_SETXATTR: nil, unix.SYS_LSETXATTR: nil, unix.SYS_FSETXATTR: nil, unix.SYS_SETXATTRAT: nil,
	unix.SYS_REMOVEXATTR: nil, unix.SYS_LREMOVEXATTR: nil, unix.SYS_FREMOVEXATTR: nil, unix.SYS_REMOVEXATTRAT: nil, unix.SYS_FILE_SETATTR: nil,
	unix.SYS_IOCTL: {{argument: 1, value: unix.FS_IOC_SETFLAGS}, {argument: 1, value: 0x401c5820}, // FS_IOC_FSSETXATTR
		{argument: 1, value: unix.FS_IOC_ENABLE_VERITY}, {argument: 1, value: unix.FS_IOC_SET_ENCRYPTION_POLICY},
		{argument: 1, value: 0x40087602}, {argument: 1, value: 0x4008941a}}, // FS_IOC_SETVERSION, BTRFS_IOC_SUBVOL_SETFLAGS
}

// older lists calls that newer architectures lack: inotify_init, which is like the calls in watches;
// open, creat, chmod, mknod, with the arguments that always allows; and chmod, chown, lchown, utime,
// utimes, futimesat, which are like the calls in changes.
var older = map[string]struct {
	watches []uint32
	always  map[uint32][]check
	changes map[uint32][]check
}{"amd64": {
	[]uint32{253}, map[uint32][]check{2: noSetID(2), 85: noSetID(1), 90: noSetID(1), 133: noSetID(1)},
	map[uint32][]check{90: nil, 92: nil, 94: nil, 132: nil, 235: nil, 261: nil},
}}

// filter forbids system calls to this thread and to what it executes. If the plugin has no network
// of its own, filter also forbids network sockets, except TCP sockets of the families tcp, which
// Landlock confines. It returns false if this program or the kernel has no filters.
func filter(kernel *Kernel, tcp []uint32) (bool, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return false, nil
	}
	old := older[runtime.GOARCH]
	lacking, refused := absent, maps.Clone(always)
	maps.Copy(refused, old.always)
	if !kernel.View {
		lacking = slices.Concat(absent, watches, old.watches)
	}
	if !kernel.Namespaces {
		maps.Copy(refused, outside)
	}
	if !kernel.ReadOnly {
		maps.Copy(refused, changes)
		maps.Copy(refused, old.changes)
	}
	raw, err := bpf.Assemble(program(arch, lacking, refused, kernel.Namespaces, tcp))
	if err != nil {
		return false, err
	}
	instructions := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		instructions[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	filter := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
	if err == unix.EINVAL { //nolint:errorlint // as the system call returns it
		return false, nil // the kernel has no filters
	}
	runtime.KeepAlive(instructions)
	return err == nil, err
}

func program(arch uint32, lacking []uint32, refused map[uint32][]check, isolated bool, tcp []uint32) []bpf.Instruction {
	refuse := func(errno uint32) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | errno}
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	all := []bpf.Instruction{
		// Numbers of another architecture mean other calls.
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		refuse(uint32(unix.ENOSYS)),
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 1 << 30, SkipTrue: 1}, // x32, on amd64
		refuse(uint32(unix.ENOSYS)),
	}
	for _, call := range lacking {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, refuse(uint32(unix.ENOSYS)))
	}
	for call, checks := range refused {
		rest := []bpf.Instruction{refuse(uint32(unix.EPERM))}
		if len(checks) > 0 {
			rest = []bpf.Instruction{allow}
		}
		for _, c := range checks {
			wrong, offset := bpf.JumpNotEqual, argument+8*c.argument
			if c.not {
				wrong = bpf.JumpEqual
			}
			if c.upper {
				offset += 4
			}
			rest = append([]bpf.Instruction{
				bpf.LoadAbsolute{Off: offset, Size: 4}, // the kernel takes 32 bits of most arguments, too
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: cmp.Or(c.mask, ^uint32(0))},
				bpf.JumpIf{Cond: wrong, Val: c.value, SkipTrue: 1}, refuse(uint32(unix.EPERM)),
			}, rest...)
		}
		all = append(append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(rest))}), rest...)
	}
	all = append(all,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1}, allow,
		bpf.LoadAbsolute{Off: argument, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_UNIX, SkipTrue: 1}, allow,
	)
	switch {
	case isolated:
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
			all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: 1}, allow)
		}
	case len(tcp) > 0:
		const kind = 0xf // without the flags SOCK_CLOEXEC and SOCK_NONBLOCK
		for i, family := range tcp {
			all = append(all, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(tcp) - i)}) // jump behind the refusal
		}
		all = append(all, refuse(uint32(unix.EACCES)),
			bpf.LoadAbsolute{Off: argument + 8, Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kind},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1}, refuse(uint32(unix.EACCES)),
			bpf.LoadAbsolute{Off: argument + 16, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1}, allow,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1}, allow,
		)
	}
	return append(all, refuse(uint32(unix.EACCES)))
}
