package cache

import (
	"errors"
	"syscall"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// fullDisk has room for half of each write.
type fullDisk struct{}

// Change implements support.Watcher.
func (fullDisk) Change(c support.Change, do func(support.Change) error) error {
	if c.Op != support.OpWrite {
		return do(c)
	}
	c.Data = c.Data[:len(c.Data)/2]
	return errors.Join(syscall.ENOSPC, do(c))
}

// TestFullDisk leaves nothing of an answer for which there is no room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	c := openTelling(t, dir, func(string) {})
	stop := support.Watch(dir, fullDisk{})
	for range 3 {
		if err := c.Put(sdk.KeyOf("a"), "about", []byte("value")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("an answer on a full disk: %v", err)
		}
	}
	if stop(); len(files(t, dir)) > 0 {
		t.Errorf("files without an answer are left: %q", files(t, dir))
	}
	put(t, c, "a", "1") // there is room again
	want(t, c, "a", "1")
}
