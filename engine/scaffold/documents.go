package scaffold

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/language"
)

// Documents is a folder, a glob or a file of documents.
type Documents struct {
	Path     string
	Files    int
	Suffixes map[string]int // how many files have it
	Unusable []document.File
	Characters,
	Read int // of some documents, evenly spread, which are read
	Code      int // of those: source code
	Languages []language.Share
}

// readDocuments is how many documents are read to tell what they are.
const readDocuments = 60

func documentsAt(ctx context.Context, place string) (*Documents, error) {
	folder, err := document.Open(document.Set{Path: place})
	if err != nil {
		return nil, fmt.Errorf("look at the documents: %w", err)
	}
	defer folder.Close() //nolint:errcheck // it was only read
	files, err := folder.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the documents in %s: %w", place, err)
	}
	d := &Documents{Path: place, Suffixes: map[string]int{}}
	var usable []document.File
	for _, f := range files {
		if f.Err != nil {
			d.Unusable = append(d.Unusable, f)
			continue
		}
		usable = append(usable, f)
	}
	var texts sample
	step := max(1, len(usable)/readDocuments)
	for i, f := range usable {
		if i%step == 0 {
			text, _, err := folder.Read(ctx, f.ID)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				d.Unusable = append(d.Unusable, document.File{ID: f.ID, Err: err})
				continue
			}
			d.Read++
			d.Characters += len(text.Text)
			if text.Meta["format"] == "code" {
				d.Code++
			} else {
				for line := range strings.Lines(text.Text) {
					texts.add(line)
				}
			}
		}
		d.Files++
		d.Suffixes[strings.ToLower(path.Ext(filepath.ToSlash(f.ID)))]++
	}
	if d.Read == 0 {
		why := "it holds no file that can be read as a document"
		if len(d.Unusable) > 0 {
			why = fmt.Sprintf("%s: %v", d.Unusable[0].ID, d.Unusable[0].Err)
		}
		return nil, fmt.Errorf("look at %s: %s", place, why)
	}
	d.Languages = texts.languages()
	return d, nil
}
