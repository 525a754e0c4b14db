//go:build linux || darwin

package model

import "golang.org/x/sys/unix"

// FreeSpace is how many bytes this user may still write where a folder is; -1: not known.
func FreeSpace(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // their types differ between systems
}
