package ship

import (
	"context"
	"errors"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
)

// Young is how long a file stays at the servers that no run names: a caller may have found it there, and is about
// to name it.
const Young = 24 * time.Hour

// Removable are the servers' files, which can be removed, as *bus.Conn has them.
type Removable interface {
	Files(ctx context.Context) ([]bus.File, error)
	RemoveFile(ctx context.Context, digest string) error
}

// Swept is what Sweep has removed.
type Swept struct {
	Files int
	Bytes int64
}

// Sweep removes files at the servers that no run names: named are the digests of all definitions that there are
// (Digests of their Files, and bundle.Bundle.Digests), read before Sweep is called. Files that are younger than Young
// stay. A caller that has begun its run calls Put once more: what it found there, and
// another has swept before the run named it, is sent then.
func Sweep(ctx context.Context, conn Removable, named map[string]bool, now time.Time) (s Swept, err error) {
	files, err := conn.Files(ctx)
	if err != nil {
		return s, err
	}
	for _, f := range files {
		if named[f.Digest] || now.Sub(f.At) < Young {
			continue
		}
		if failed := conn.RemoveFile(ctx, f.Digest); failed != nil {
			if err = errors.Join(err, failed); ctx.Err() != nil {
				return s, err
			}
			continue
		}
		s.Files++
		s.Bytes += f.Size
	}
	return s, err
}

// Digests are those of shipped files.
func Digests(files []Shipped) (all []string) {
	for _, f := range files {
		all = append(all, f.Digest)
	}
	return all
}
