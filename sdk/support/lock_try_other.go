//go:build !unix

package support

import (
	"errors"
	"fmt"
	"os"
)

// try refuses: without a lock two processes could write at once.
func try(f *os.File) error {
	return fmt.Errorf("lock %s: %w on this operating system", f.Name(), errors.ErrUnsupported)
}

// tryShared refuses for the same reason.
func tryShared(f *os.File) error { return try(f) }

func unlock(*os.File) error { return nil }
