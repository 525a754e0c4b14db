//go:build !linux

package nodump

// Set makes this process unreadable, unless Variable says otherwise. It has an
// effect on Linux only.
func Set() error { return nil }
