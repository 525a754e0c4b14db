package document

import "syscall"

// limitMemory makes allocations fail, and so this process end, beyond so many bytes.
func limitMemory(bytes uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}) // lowering the limit needs no privilege
}
