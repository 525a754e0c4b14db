//go:build !linux

package support

// NoDump makes this process unreadable, unless Variable says otherwise. It has an
// effect on Linux only.
func NoDump() error { return nil }
