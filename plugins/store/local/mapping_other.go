//go:build !unix

package local

import "os"

// forget does nothing: b is a copy.
func forget([]byte) {}

// mapFile reads a file. Its copy is aligned as views of it need it.
func mapFile(path string) (b []byte, unmap func(), err error) {
	b, err = os.ReadFile(path)
	return aligned(b), func() {}, err
}
