package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/racflow/racflow/sdk/support"
)

// Bounds of what Temp does about folders that killed processes left.
const (
	maxLooked  = 20_000 // names in a folder for temporary files
	maxRemoved = 32     // folders
)

// lockName is a file in each temporary folder, which the process locks that has made it.
const lockName = "lock"

// prefix begins the names of this user's temporary folders.
func prefix() string { return fmt.Sprintf("racflow-%d.", os.Getuid()) }

// swept has the folders in which this process has looked for what others left.
var swept sync.Map

// Temp makes a temporary folder in root, for as long as this process lives or until remove is
// called. The first time, it removes such folders of this user whose process is dead, which their lock says for certain.
func Temp(root string) (dir string, remove func(), err error) {
	if _, done := swept.LoadOrStore(root, true); !done {
		sweep(root)
	}
	for range 5 { // another process may take a new folder for a left one before it is locked
		if dir, err = os.MkdirTemp(root, prefix()); err != nil {
			return "", nil, err
		}
		var held *os.File
		held, err = support.OpenLock(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, FileMode)
		if err == nil {
			return dir, func() { _ = errors.Join(os.RemoveAll(dir), support.CloseLock(held)) }, nil
		}
		if errors.Is(err, errors.ErrUnsupported) { // then nobody removes what others left
			return dir, func() { _ = os.RemoveAll(dir) }, nil
		}
		if _ = os.RemoveAll(dir); !errors.Is(err, support.ErrBusy) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return "", nil, err
}

// sweep removes folders that Temp made for processes that are dead. At worst some stay.
func sweep(root string) {
	folder, err := os.Open(root)
	if err != nil {
		return
	}
	names, _ := folder.Readdirnames(maxLooked)
	_ = folder.Close()
	removed := 0
	for _, name := range names {
		if !strings.HasPrefix(name, prefix()) || removed == maxRemoved {
			continue
		}
		dir := filepath.Join(root, name)
		held, err := support.OpenLock(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue // its process is alive, or about to lock it
		}
		_ = errors.Join(os.RemoveAll(dir), support.CloseLock(held))
		removed++
	}
}
