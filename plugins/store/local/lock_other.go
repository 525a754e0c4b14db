//go:build !unix

package local

import (
	"errors"
	"os"
)

// takeLock fails: without advisory locks two processes could write at once.
func (c *collection) takeLock() (*os.File, error) {
	return nil, errors.New("store local cannot write on this operating system yet: use another store")
}

func releaseLock(f *os.File) { f.Close() }
