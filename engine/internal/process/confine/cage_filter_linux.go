package confine

import (
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where the parts of a system call lie in what a filter sees.
const (
	callNumber   = 0
	architecture = 4
	argument     = 16 // 8 bytes each; the lower half comes first on all that are supported
)

var architectures = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// forbidden are calls that reach around the other layers: io_uring makes sockets that no
// filter sees, keys belong to the user, and the rest looks into the kernel or other processes.
var forbidden = []uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
}

// filter forbids system calls to this thread and what it executes. Where the network is
// not the plugin's own it forbids the sockets that reach it, but those of TCP of some families,
// which Landlock confines. It returns false where filters are not known to this program or kernel.
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
		return false, nil // a kernel without filters
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
		// Calls by the numbers of another architecture would be taken for others.
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
			all = append(all, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(tcp) - i)}) // to behind the refusal
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
