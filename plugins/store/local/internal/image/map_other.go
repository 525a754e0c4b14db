//go:build !unix

package image

import "os"

// forget does nothing: b is a copy.
func forget([]byte) {}

// Map reads a file. Its copy is aligned as views of it need it.
func Map(path string) (b []byte, unmap func(), err error) {
	b, err = os.ReadFile(path)
	return Aligned(b), func() {}, err
}
