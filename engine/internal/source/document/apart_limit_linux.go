package document

import "syscall"

// limit makes allocations beyond this many bytes fail, which ends this process. It also ends the process after ten
// minutes of processor time. Normally the parent ends the process, but the parent may be gone, and a timer in this
// process may never run beside native code.
func limit(bytes uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}) // lowering a limit needs no privilege
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: 600, Max: 600})
}
