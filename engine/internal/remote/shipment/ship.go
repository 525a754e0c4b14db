package shipment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk/support"
)

// This file copies files from a caller's state folder to the state folders of workers.
//
// A local store's collection is a few immutable segments and a log. Each is an object at the
// servers, named by the SHA-256 of its content. So a second run over a knowledge uploads only
// changed files, and no worker downloads a file twice. A worker stores downloads by digest below
// its state folder, and places them where its stores look for them: by a hard link if the file
// system supports it and the content is immutable, otherwise by a copy. Processes that have the
// earlier content open keep it.
//
// Interrupted transfers resume: complete objects at the servers, and complete files at the worker,
// are not sent again.
//
// The file knows nothing of stores and pipelines: engine.Pipeline.Shipment lists the files that a run needs.

// KeptFiles is a folder of files named by their digests, which workers may share.
type KeptFiles struct{ Dir string }

// Get places files in a state folder, each atomically. It downloads those that the folder of kept files
// lacks. It rejects names that lead out of the state folder.
//
// Get replaces a file of that name with other content, for everyone who opens it afterwards. So
// give runs that may be under way at the same time separate state folders.
func (k KeptFiles) Get(ctx context.Context, conn ObjectStore, files []Shipped, state string) error {
	if err := disk.MakeFolder(k.Dir); err != nil {
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

// check rejects a name that leads out of a folder, and an invalid digest.
func (f Shipped) check() error {
	name := filepath.FromSlash(f.Name)
	if !filepath.IsLocal(name) || filepath.Clean(name) != name {
		return fmt.Errorf("%q is no name of a file below a state folder", f.Name)
	}
	return checkDigest(f.Digest)
}

var digestForm = support.Pattern(`^[0-9a-f]{64}$`)

// checkDigest rejects everything but hexadecimal SHA-256, since it becomes a file name.
func checkDigest(digest string) error {
	if !digestForm().MatchString(digest) {
		return fmt.Errorf("%q is no digest", digest)
	}
	return nil
}

// path returns the path of a kept file.
func (k KeptFiles) path(digest string) string { return filepath.Join(k.Dir, digest) }

// whole verifies the kept file of a digest. The error is os.ErrNotExist if it is missing or damaged.
func (k KeptFiles) whole(digest string) error {
	found, err := program.HashFile(k.path(digest))
	if err == nil && found != digest {
		err = fmt.Errorf("%s: %w: %w", k.path(digest), errDamaged, os.ErrNotExist)
	}
	return err
}

// load downloads a file to the folder of kept files, unless it is there and undamaged.
func (k KeptFiles) load(ctx context.Context, conn ObjectStore, f Shipped) error {
	if err := k.whole(f.Digest); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := os.CreateTemp(k.Dir, unfinished+"*") // accessible to its owner only
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // it has been renamed, or Trim removes it
	err = conn.GetFile(ctx, f.Digest, out)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if found, err := program.HashFile(out.Name()); err != nil || found != f.Digest {
		return errors.Join(err, errDamaged)
	}
	return os.Rename(out.Name(), k.path(f.Digest))
}

// unfinished is the name prefix of files that are being written.
const unfinished = "new-"

// place puts a kept file at its name in a state folder.
func (k KeptFiles) place(f Shipped, state string) error {
	from, to := k.path(f.Digest), filepath.Join(state, filepath.FromSlash(f.Name))
	now := time.Now()
	_ = os.Chtimes(from, now, now) // for Trim
	if err := disk.MakeBelow(state, filepath.Dir(to)); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(to), unfinished+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // the folder is empty by then
	whole := filepath.Join(temp, "file")
	put := disk.CopyFile
	if f.Fixed {
		put = disk.LinkFile
	}
	if err := put(from, whole); err != nil {
		return err
	}
	return os.Rename(whole, to)
}

// parallel is how many files are transferred at the same time.
const parallel = 4

// PutShipped uploads files that the servers lack. The result is in the order of files. After an
// interruption, it continues with the missing files.
func PutShipped(ctx context.Context, conn ObjectStore, files []engine.ShipFile) ([]Shipped, error) {
	all := make([]Shipped, len(files))
	var seen sync.Map // by digest
	err := each(ctx, len(files), func(ctx context.Context, i int) error {
		f := files[i]
		info, err := os.Stat(f.Path)
		if err != nil {
			return fmt.Errorf("ship %s: %w", f.Name, err)
		}
		digest, err := program.HashFile(f.Path)
		if err != nil {
			return fmt.Errorf("ship %s: %w", f.Name, err)
		}
		all[i] = Shipped{Name: f.Name, Digest: digest, Size: info.Size(), Fixed: f.Fixed}
		if _, sent := seen.LoadOrStore(digest, true); sent {
			return nil
		}
		if all[i].Moved, err = put(ctx, conn, f.Path, digest); err != nil {
			return fmt.Errorf("ship %s: %w", f.Name, err)
		}
		return nil
	})
	return all, err
}

func put(ctx context.Context, conn ObjectStore, path, digest string) (sent bool, err error) {
	there, err := conn.HasFile(ctx, digest)
	if err != nil || there {
		return false, err
	}
	in, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	return true, conn.PutFile(ctx, digest, in)
}

// each calls do for the numbers below n, a few at a time, until one call fails.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range n {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return do(gctx, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx) // ctx may have ended before the first call
}

// errDamaged says that a downloaded file does not match its digest.
var errDamaged = errors.New("its content is not that of its digest")

// Shipped is a file at the servers.
type Shipped struct {
	Name   string `json:"name"`            // below the state folder, with slashes
	Digest string `json:"digest"`          // SHA-256 of the content, hexadecimal: the object's name
	Size   int64  `json:"size"`            // bytes
	Fixed  bool   `json:"fixed,omitempty"` // immutable in its place, so it may be linked
	Moved  bool   `json:"-"`               // PutShipped has sent it: it was not there before
}

// ObjectStore stores files at the servers, by digest; *bus.Conn implements it.
type ObjectStore interface {
	HasFile(ctx context.Context, digest string) (bool, error)
	PutFile(ctx context.Context, digest string, r io.Reader) error
	GetFile(ctx context.Context, digest string, w io.Writer) error
}

// Trim removes kept files that were not requested since before, and the remains of killed workers.
// State folders with links to them keep their content.
func (k KeptFiles) Trim(before time.Time) error {
	entries, err := os.ReadDir(k.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, statErr := e.Info()
		if statErr != nil || info.ModTime().After(before) {
			continue
		}
		if removed := os.Remove(filepath.Join(k.Dir, e.Name())); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
