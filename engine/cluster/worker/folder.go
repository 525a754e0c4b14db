package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/sdk/support"
)

// DefaultState is the state folder where Options names none.
var DefaultState = filepath.Join(".racflow", "worker")

// maxShared is how many workers may share a state folder.
const maxShared = 256

// folder is where a worker keeps what runs need:
//
//	files/   what runs brought, by digest; of all workers that share the folder
//	1/ID/    what this worker works with for the run ID: the pipeline's file and its state
//	2/       the same of another worker; whoever has locked N/lock owns N
type folder struct {
	root string
	own  string
	held *os.File // the lock of own; nil: the system has none
}

// openFolder takes a part of a state folder that no other worker has. What a worker that had it
// before has left there serves again.
func openFolder(state string) (*folder, error) {
	if state == "" {
		state = DefaultState
	}
	root, err := filepath.Abs(state)
	if err != nil {
		return nil, err
	}
	for n := range maxShared {
		f := &folder{root: root, own: filepath.Join(root, strconv.Itoa(n+1))}
		for _, dir := range []string{root, f.Files(), f.own} {
			if err := private.MakeFolder(dir); err != nil {
				return nil, err
			}
		}
		f.held, err = support.OpenLock(filepath.Join(f.own, "lock"), os.O_RDWR|os.O_CREATE, private.FileMode)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, support.ErrBusy):
			continue
		case errors.Is(err, errors.ErrUnsupported): // nobody can tell whose it is
			if f.own, err = os.MkdirTemp(root, "own-*"); err != nil {
				return nil, err
			}
			return f, nil
		default:
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d workers use the folder %s already: give this one another with --state", maxShared, root)
}

// clear removes what is left of runs that are not there any more.
func (f *folder) clear(there []string) error {
	all, err := os.ReadDir(f.own)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.IsDir() && !slices.Contains(there, e.Name()) {
			err = errors.Join(err, f.Remove(e.Name()))
		}
	}
	return err
}

// Files is where files are kept by their digests.
func (f *folder) Files() string { return filepath.Join(f.root, "files") }

// Run makes the folder of a run, unless it is there: the worker may have taken part in it before.
func (f *folder) Run(id string) (dir string, err error) {
	dir = filepath.Join(f.own, id)
	return dir, private.MakeFolder(dir)
}

// Remove removes the folder of a run.
func (f *folder) Remove(id string) error { return os.RemoveAll(filepath.Join(f.own, id)) }

// close gives the part of the folder back. What is in it stays for the next worker.
func (f *folder) close() error {
	if f.held == nil {
		return os.RemoveAll(f.own)
	}
	return f.held.Close() // the file stays: another may be waiting to lock it
}
