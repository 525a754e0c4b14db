package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/lock"
)

// takeLock makes this process the collection's only writer until it closes the
// file, or ends.
func (c *collection) takeLock() (*os.File, error) {
	path := filepath.Join(c.dir, "lock")
	f, err := lock.Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, lock.ErrBusy) {
		holder, _ := os.ReadFile(path)
		err = sdk.Transient(fmt.Errorf("collection %q is being written by process %s: wait until it is done", c.name, strings.TrimSpace(string(holder))), time.Second)
	}
	if err != nil {
		return nil, err
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
