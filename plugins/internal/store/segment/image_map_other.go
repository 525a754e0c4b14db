//go:build !unix

package segment

import "os"

// forget does nothing: b is a copy.
func forget([]byte) {}

// MapFile reads a file. Its copy is aligned as views of it need it.
func MapFile(path string) (b []byte, unmap func(), err error) {
	b, err = os.ReadFile(path)
	return Aligned(b), func() {}, err
}
