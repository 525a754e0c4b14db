//go:build !linux && !darwin

package hub

// Free is how many bytes this user may still write where a folder is; -1: not known.
func Free(string) int64 { return -1 }
