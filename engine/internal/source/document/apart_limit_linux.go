package document

import "syscall"

// limit makes allocations fail, and so this process end, beyond so many bytes. It ends after ten minutes of processor time, too, in case
// that its parent, which would end it, is gone: a timer in here may never run beside native code.
func limit(bytes uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}) // lowering a limit needs no privilege
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: 600, Max: 600})
}
