//go:build amd64

package simd

import "golang.org/x/sys/unix"

// permitTiles asks the kernel for the tile registers of AMX, which a process may
// use only with permission: a thread that does has 8 KB more to save.
func permitTiles() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM in asm/prctl.h
		tileData          = 18     // XFEATURE_XTILEDATA
	)
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
