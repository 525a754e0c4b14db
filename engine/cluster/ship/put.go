package ship

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/program"
)

// parallel is how many files are on their way at a time.
const parallel = 4

// Put brings files to the servers that are not there yet. The order is that of files. What was
// broken off goes on with the files that are missing.
func Put(ctx context.Context, conn Objects, files []engine.ShipFile) ([]Shipped, error) {
	all := make([]Shipped, len(files))
	var seen sync.Map // digests
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

func put(ctx context.Context, conn Objects, path, digest string) (sent bool, err error) {
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

// each calls do for the numbers below n, a few at a time, until one fails.
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
	return context.Cause(ctx) // it may have ended before any began
}

// errDamaged says that what was loaded is not what was asked for.
var errDamaged = errors.New("its content is not that of its digest")
