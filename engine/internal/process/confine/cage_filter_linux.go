package confine

import (
	"runtime"
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

// forbidden lists calls that bypass the other layers: io_uring creates sockets that the filter does
// not see, keys belong to the user, and the other calls inspect the kernel or other processes.
var forbidden = []uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
}

// filter forbids system calls to this thread and to what it executes. If the plugin has no network
// of its own, filter also forbids network sockets, except TCP sockets of the families tcp, which
// Landlock confines. It returns false if this program or the kernel has no filters.
func filter(isolated bool, tcp []uint32) (bool, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return false, nil
	}
	raw, err := bpf.Assemble(program(arch, isolated, tcp))
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

func program(arch uint32, isolated bool, tcp []uint32) []bpf.Instruction {
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
	for _, call := range forbidden {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, refuse(uint32(unix.ENOSYS)))
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
