package ship

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/program"
)

// Kept is a folder of files by their digests, which workers may share.
type Kept struct{ Dir string }

// Get puts files into a state folder, each whole or not at all, and loads what is missing, once for all
// workers that share the folder of kept ones. Names that lead out of the state folder are refused.
//
// A file of that name with another content is replaced, which changes it for whoever opens it
// next: runs that may be under way at a time get a state folder each.
func (k Kept) Get(ctx context.Context, conn Objects, files []Shipped, state string) error {
	if err := private.MakeFolder(k.Dir); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.check(); err != nil {
			return err
		}
	}
	return each(ctx, len(files), func(ctx context.Context, i int) error {
		f := files[i]
		err := k.load(ctx, conn, f)
		if err == nil {
			err = k.place(f, state)
		}
		if err != nil {
			return fmt.Errorf("load %s (%s): %w", f.Name, f.Digest, err)
		}
		return nil
	})
}

// check refuses a name that leads out of a folder, and a digest that is none.
func (f Shipped) check() error {
	name := filepath.FromSlash(f.Name)
	if !filepath.IsLocal(name) || filepath.Clean(name) != name {
		return fmt.Errorf("%q is no name of a file below a state folder", f.Name)
	}
	return checkDigest(f.Digest)
}

// checkDigest refuses what is no SHA-256 in hexadecimal: it becomes the name of a file.
func checkDigest(digest string) error {
	for _, c := range digest {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%q is no digest", digest)
		}
	}
	if len(digest) != 64 {
		return fmt.Errorf("%q is no digest", digest)
	}
	return nil
}

// path is that of a kept file.
func (k Kept) path(digest string) string { return filepath.Join(k.Dir, digest) }

// whole reads the kept file of a digest: os.ErrNotExist, it is not there, or damaged.
func (k Kept) whole(digest string) error {
	found, err := program.HashFile(k.path(digest))
	if err == nil && found != digest {
		err = fmt.Errorf("%s: %w: %w", k.path(digest), errDamaged, os.ErrNotExist)
	}
	return err
}

// load brings a file to the folder of kept ones unless it is there, whole.
func (k Kept) load(ctx context.Context, conn Objects, f Shipped) error {
	unlock, err := k.lock(ctx, f.Digest)
	if err != nil {
		return err
	}
	defer unlock()
	if err := k.whole(f.Digest); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for try := 1; ; try++ {
		err := k.loadOnce(ctx, conn, f)
		if err == nil || ctx.Err() != nil || try >= tries {
			return err
		}
	}
}

// tries is how often a file is loaded before it is an error that it comes damaged.
const tries = 3

func (k Kept) loadOnce(ctx context.Context, conn Objects, f Shipped) error {
	out, err := os.CreateTemp(k.Dir, unfinished+"*") // with the rights of its owner alone
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // it has got its name, or Trim removes it
	err = conn.GetFile(ctx, f.Digest, out)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if found, err := program.HashFile(out.Name()); err != nil || found != f.Digest {
		return errors.Join(err, errDamaged)
	}
	return os.Rename(out.Name(), k.path(f.Digest))
}
