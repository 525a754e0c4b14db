//go:build linux || darwin

package model

import "golang.org/x/sys/unix"

// FreeSpace returns the bytes that this user may still write on a folder's disk; -1: unknown.
func FreeSpace(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // their types differ between systems
}
