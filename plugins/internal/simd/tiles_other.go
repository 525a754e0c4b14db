//go:build amd64 && !linux

package simd

func permitTiles() bool { return false }
