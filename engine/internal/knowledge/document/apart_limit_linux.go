package document

import "syscall"

// limitMemory ends this process when it asks for more bytes.
func limitMemory(bytes uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}) // lowering it needs no right
}
