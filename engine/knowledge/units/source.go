package units

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Unit is a row or a document. Its hash is that of its content alone. Text and
// metadata of one that is read when it is wanted come with Source.Load.
type Unit = sdk.Entry

// Document is a unit with its chunks: one that is all of its text where nothing cuts
// it, none where there is no text.
type Document struct {
	Unit
	Chunks []sdk.Chunk
}

// Passages are the chunks where they stand.
func (d Document) Passages() []sdk.Passage {
	whole := &sdk.Document{ID: d.ID, Text: d.Text, Meta: d.Meta}
	all := make([]sdk.Passage, len(d.Chunks))
	for i, c := range d.Chunks {
		all[i] = sdk.Passage{Document: whole, Chunk: c}
	}
	return all
}

// Source is what a source holds.
type Source struct {
	Units   []Unit
	Digest  string       // of all of it
	Invalid []InvalidRow // the first MaxInvalid
	Count   int          // of all invalid rows

	sizes  map[string]int64      // of documents, by id
	places map[string]InvalidRow // where units stand, by id, without an error
	load   loader
}

// Size is how many bytes the file of a document has; 0: it is a row.
func (s *Source) Size(id string) int64 { return s.sizes[id] }

// A loader calls f with each of the wanted units, complete, or with why it cannot be
// used. An error of f ends it.
type loader func(ctx context.Context, wanted []Unit, f func(Unit, error) error) error

// InvalidRow is a row or document of the source that cannot be used.
type InvalidRow struct {
	Path string
	Line int // 0: a document as a whole
	Err  error
}

// MaxInvalid is how many invalid rows are kept.
const MaxInvalid = 1000

func (r InvalidRow) String() string {
	if r.Line == 0 {
		return fmt.Sprintf("%s: %v", r.Path, r.Err)
	}
	return fmt.Sprintf("%s:%d: %v", r.Path, r.Line, r.Err)
}

// SourceError says that a source block names something that cannot be read.
type SourceError struct {
	Range hcl.Range // of the source block
	Err   error
}

func (e *SourceError) Error() string { return e.Err.Error() }

func (e *SourceError) Unwrap() error { return e.Err }

// Read reads what the source of a block holds. Of rows that are cut only the hashes
// are kept, unless they can be read only once.
func Read(ctx context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
	read, nothing := readRows, "%s holds no usable row: below the header a row needs a text"
	if block.Documents() != nil {
		read, nothing = listDocuments, "%s holds no document: name a folder, a glob such as docs/**/*.md, or a file of text, Markdown, HTML, PDF, docx, pptx, xlsx, ipynb, eml or source code"
	}
	s, err := read(ctx, block, stdin)
	if err == nil && len(s.Units) == 0 {
		if err = fmt.Errorf(nothing, block.Main().Path); len(s.Invalid) > 0 {
			err = fmt.Errorf("%w. The first error: %s", err, s.Invalid[0])
		}
	}
	if err != nil && !errors.As(err, new(*SourceError)) {
		err = &SourceError{block.Main().Range, err}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Load calls f with each of the wanted units, complete, or with why it cannot be
// used. An error of f ends it.
func (s *Source) Load(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
	return s.load(ctx, wanted, f)
}

// At says where a unit stands that has an error.
func (s *Source) At(unit string, err error) InvalidRow {
	at := s.places[unit]
	at.Err = err
	return at
}

func (s *Source) reject(r InvalidRow) {
	if s.Count++; len(s.Invalid) < MaxInvalid {
		s.Invalid = append(s.Invalid, r)
	}
}
