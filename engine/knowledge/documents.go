package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// listDocuments reads the names and hashes of the documents of a source. Their
// texts are made when they are wanted.
func listDocuments(ctx context.Context, s pipeline.Source) (*rows, error) {
	folder, err := document.Open(*s.Documents)
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // it was only read
	files, err := folder.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Path, err)
	}
	all := &rows{places: make(map[string]InvalidRow, len(files)), load: loadDocuments(s)}
	digest := sha256.New()
	for _, f := range files {
		at := InvalidRow{Path: filepath.Join(folder.Path(), filepath.FromSlash(f.ID)), Err: f.Err}
		fmt.Fprintf(digest, "%q %x\n", f.ID, f.Hash)
		if f.Err != nil {
			all.fault(at)
			continue
		}
		all.places[f.ID] = at
		all.units = append(all.units, unit{Entry: sdk.Entry{ID: f.ID, Hash: f.Hash}})
	}
	all.digest = hex.EncodeToString(digest.Sum(nil))
	return all, nil
}

// loadDocuments returns a load that makes documents of files.
func loadDocuments(s pipeline.Source) func(context.Context, []unit, func(unit, error) error) error {
	return func(ctx context.Context, wanted []unit, f func(unit, error) error) error {
		folder, err := document.Open(*s.Documents)
		if err != nil {
			return err
		}
		defer folder.Close() //nolint:errcheck // it was only read
		for _, u := range wanted {
			if err := ctx.Err(); err != nil {
				return err
			}
			d, hash, err := folder.Read(u.ID)
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
