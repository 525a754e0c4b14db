package units

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/pipeline"
)

// listDocuments reads the names and hashes of the documents of a source.
func listDocuments(ctx context.Context, block *pipeline.Knowledge, _ io.Reader) (*Source, error) {
	folder, err := document.Open(*block.Documents())
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // it was only read
	files, err := folder.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", block.Main().Path, err)
	}
	s := &Source{places: make(map[string]InvalidRow, len(files)), sizes: make(map[string]int64, len(files)), load: loadDocuments(*block.Documents())}
	digest := sha256.New()
	for _, f := range files {
		at := InvalidRow{Path: filepath.Join(folder.Path(), filepath.FromSlash(f.ID)), Err: f.Err}
		fmt.Fprintf(digest, "%q %x\n", f.ID, f.Hash)
		if f.Err != nil {
			s.reject(at)
			continue
		}
		s.places[f.ID], s.sizes[f.ID] = at, f.Size
		s.Units = append(s.Units, Unit{ID: f.ID, Hash: f.Hash})
	}
	s.Digest = hex.EncodeToString(digest.Sum(nil))
	return s, nil
}

func loadDocuments(set document.Set) loader {
	return func(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
		folder, err := document.Open(set)
		if err != nil {
			return err
		}
		defer folder.Close() //nolint:errcheck // it was only read
		for _, u := range wanted {
			if err := ctx.Err(); err != nil {
				return err
			}
			d, hash, err := folder.Read(ctx, u.ID)
			if err == nil {
				u.Text, u.Meta, u.Hash = d.Text, d.Meta, hash
			}
			if err := f(u, err); err != nil {
				return err
			}
		}
		return nil
	}
}
