//go:build !amd64

package simd

func native() []*Kernel { return nil }
