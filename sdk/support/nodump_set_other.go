//go:build !linux

package support

// NoDump makes this process unreadable, unless NoDumpVariable forbids it. It works only on Linux.
func NoDump() error { return nil }
