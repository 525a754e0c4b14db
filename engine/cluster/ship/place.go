package ship

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk/support"
)

// unfinished begins the names of files that are being written.
const unfinished = "new-"

// again is how long a worker waits before it looks whether another has loaded a file.
const again = 50 * time.Millisecond

// lock makes this the only one to load a file. It waits where another worker is at it.
func (k Kept) lock(ctx context.Context, digest string) (unlock func(), err error) {
	path := k.path(digest) + ".lock"
	for {
		held, err := support.OpenLock(path, os.O_RDWR|os.O_CREATE, private.FileMode)
		switch {
		case err == nil:
			return func() { _ = errors.Join(os.Remove(path), held.Close()) }, nil // the lock ends with the process at the latest
		case errors.Is(err, errors.ErrUnsupported):
			return func() {}, nil // then two may load it
		case !errors.Is(err, support.ErrBusy):
			return nil, err
		}
		if err := support.SleepFor(ctx, again); err != nil {
			return nil, err
		}
	}
}

// place gives a kept file its name in a state folder.
func (k Kept) place(f Shipped, state string) error {
	from, to := k.path(f.Digest), filepath.Join(state, filepath.FromSlash(f.Name))
	now := time.Now()
	_ = os.Chtimes(from, now, now) // for Trim
	if err := private.MakeBelow(state, filepath.Dir(to)); err != nil {
		return err
	}
	if same, err := holds(to, from, f); err != nil || same {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(to), unfinished+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it is empty
	whole := filepath.Join(temp, "file")
	if !f.Fixed || os.Link(from, whole) != nil {
		if err := clone(from, whole); err != nil {
			return err
		}
	}
	return os.Rename(whole, to)
}

// holds reports whether a file is there with the content already.
func holds(path, kept string, f Shipped) (bool, error) {
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if from, err := os.Stat(kept); err == nil && os.SameFile(there, from) {
		return true, nil
	}
	if there.Size() != f.Size {
		return false, nil
	}
	digest, err := program.HashFile(path)
	return digest == f.Digest, err
}

func clone(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private.FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
