//go:build !linux

package confine

// Probe finds nothing, because the means of confinement are part of Linux.
func Probe() Kernel { return Kernel{} }
