//go:build !linux && !darwin

package model

// FreeSpace is how many bytes this user may still write where a folder is; -1: not known.
func FreeSpace(string) int64 { return -1 }
