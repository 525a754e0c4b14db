package generation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/document"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/sdk"
)

// Around returns the ids of a chunk and of n chunks before and after it in its document,
// in order; those of them that a document does not have are among them. nil: the
// candidate is no chunk of a document.
func Around(c sdk.Candidate, n int) []string {
	document, ok := c.Meta[metaDocument].(string)
	if !ok {
		return nil
	}
	number, err := strconv.Atoi(strings.TrimPrefix(c.ID, document+"#"))
	if err != nil {
		return nil
	}
	var ids []string
	for i := max(0, number-n); i <= number+n; i++ {
		ids = append(ids, chunkID(document, i))
	}
	return ids
}

// Widen gives a candidate the text and the place of chunks that follow each other in its
// document. What two of them share stands once.
func Widen(c sdk.Candidate, chunks []sdk.Entry) sdk.Candidate {
	c.Meta = maps.Clone(c.Meta)
	end := 0
	for i, e := range chunks {
		start, last := span(e.Meta)
		own := e.Text[max(0, len(e.Text)-max(0, last-start)):] // without its header
		switch {
		case i == 0:
			c.Text = e.Text
			place(c.Meta, e.Meta, metaStart, "first_line", "first_page")
		case start > end:
			c.Text += "\n" + own
		case end-start < len(own):
			c.Text += own[end-start:]
		}
		place(c.Meta, e.Meta, metaEnd, "last_line", "last_page")
		end = max(end, last)
	}
	return c
}

func place(to, from sdk.Meta, keys ...string) {
	for _, key := range keys {
		if v, ok := from[key]; ok {
			to[key] = v
		}
	}
}

// span is the place of a chunk in its document's text, in bytes.
func span(m sdk.Meta) (start, end int) {
	from, _ := m[metaStart].(float64)
	to, _ := m[metaEnd].(float64)
	return int(from), int(to)
}

// The metadata that every chunk has beside what its document and its chunker
// know.
const (
	metaDocument = "document" // id of the document
	metaStart    = "start"    // first byte of the chunk in the document's text
	metaEnd      = "end"      // the byte after its last
	metaHeader   = "header"   // bytes of the entry's text that stand elsewhere in the document's; absent: none
)

// numbering says how people find a chunk, from 1: by what ends a line or a page, and
// the names of the first and the last.
type numbering struct{ end, first, last string }

// numberingOf is empty where a text has no lines that a reader of the file knows.
func numberingOf(format any) numbering {
	switch format {
	case "pdf":
		return numbering{"\f", "first_page", "last_page"}
	case "html", "docx", "pptx", "xlsx", "notebook", "mail":
		return numbering{}
	}
	return numbering{"\n", "first_line", "last_line"}
}

// Entries makes an entry of each chunk: its header and its text, with the place of the text
// alone. From their hashes it shows how many they are:
// where one is missing, the document is redone.
func (d Document) Entries() []sdk.Entry {
	hash := binary.BigEndian.AppendUint32(bytes.Clone(d.Hash), uint32(len(d.Chunks)))
	entries := make([]sdk.Entry, len(d.Chunks))
	by := numberingOf(d.Meta["format"])
	number, counted := 1, 0 // of lines or pages up to a byte
	for i, c := range d.Chunks {
		meta := make(sdk.Meta, len(d.Meta)+len(c.Meta)+6)
		maps.Copy(meta, d.Meta)
		maps.Copy(meta, c.Meta)
		meta[metaDocument], meta[metaStart], meta[metaEnd] = d.ID, float64(c.Start), float64(c.End)
		own := d.Text[c.Start:c.End]
		if n := c.Header.End - c.Header.Start; n > 0 {
			meta[metaHeader] = float64(n)
		}
		if by.end != "" {
			number += strings.Count(d.Text[counted:c.Start], by.end)
			counted = c.Start
			meta[by.first] = float64(number)
			meta[by.last] = float64(number + strings.Count(strings.TrimRight(own, "\r\n\f"), by.end))
		}
		entries[i] = sdk.Entry{ID: chunkID(d.ID, i), Text: c.In(d.Text), Label: d.Label, Context: d.Context, Meta: meta, Hash: hash}
	}
	return entries
}

// chunkID names a chunk after its document and its number in it, from 0.
func chunkID(document string, number int) string { return document + "#" + strconv.Itoa(number) }

// DocumentOf is the id of the document that an entry is a chunk of; its own where it is no
// chunk.
func DocumentOf(e sdk.Entry) string {
	if document, ok := e.Meta[metaDocument].(string); ok {
		return document
	}
	return e.ID
}

// InOrder compares candidates by their documents' ids, and within a document by
// place; a row is a document of its own.
func InOrder(a, b sdk.Candidate) int {
	documentA, startA := placed(a)
	documentB, startB := placed(b)
	return cmp.Or(cmp.Compare(documentA, documentB), cmp.Compare(startA, startB), cmp.Compare(a.ID, b.ID))
}

func placed(c sdk.Candidate) (document string, start float64) {
	document, ok := c.Meta[metaDocument].(string)
	if start, isNumber := c.Meta[metaStart].(float64); ok && isNumber {
		return document, start
	}
	return c.ID, 0
}

// The metadata that say who has decided about an entry, and when.
const (
	metaReviewer = "reviewer"
	metaReviewed = "reviewed_at"
)

// decided are what people have decided about the rows of a knowledge.
type decided struct {
	path    string
	digest  string
	rows    []reviewed.Row
	changes map[string]reviewed.Row // by the ids of the rows that they replace; those that were not met yet
}

// readDecided reads the decisions in a file; nil: the path is empty.
func readDecided(path string, reject func(InvalidRow)) (*decided, error) {
	if path == "" {
		return nil, nil
	}
	digest, err := digestOfDecisions(path) // of what is read, or of what was before that: then it is read again
	if err != nil {
		return nil, err
	}
	d := &decided{path: path, digest: digest, changes: map[string]reviewed.Row{}}
	var errs []error
	d.rows, errs = reviewed.Read(path)
	for _, err := range errs {
		line := new(reviewed.LineError)
		if !errors.As(err, &line) {
			return nil, err
		}
		reject(InvalidRow{Path: path, Line: line.Line, Err: line.Err})
	}
	for _, r := range d.rows {
		if r.Replaces != "" {
			d.changes[r.Replaces] = r
		}
	}
	return d, nil
}

// revise makes of a unit what was decided about it, and reports whether it stays.
func (d *decided) revise(u *Unit) (stays bool) {
	if d == nil {
		return true
	}
	r, ok := d.changes[u.ID]
	if !ok {
		return true
	}
	delete(d.changes, u.ID)
	if r.Drops() {
		return false
	}
	u.Text, u.Label, u.Meta = r.Text, r.Label, signed(u.Meta, r)
	u.Hash = source.Row{Text: u.Text, Label: u.Label, Meta: u.Meta, Context: u.Context}.Hash()
	return true
}

// rest calls f with the units that were decided beside those of other sources.
func (d *decided) rest(places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) error {
	for _, r := range d.rows {
		at := InvalidRow{Path: d.path, Line: r.Line}
		if _, missed := d.changes[r.Replaces]; r.Replaces != "" {
			if missed && !r.Drops() { // a row that is gone needs not be dropped
				at.Err = fmt.Errorf("it replaces the row %q, which no other source has any more: remove the line or, to keep it as a row of its own, its member replaces", r.Replaces)
				reject(at)
			}
			continue
		}
		if first, ok := places[r.ID]; ok {
			at.Err = repeated(r.ID, first, at)
			reject(at)
			continue
		}
		places[r.ID] = at
		u := Unit{ID: r.ID, Text: r.Text, Label: r.Label, Meta: signed(nil, r)}
		u.Hash = source.Row{Text: u.Text, Label: u.Label, Meta: u.Meta}.Hash()
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

// signed adds to metadata who has decided, and when.
func signed(meta sdk.Meta, r reviewed.Row) sdk.Meta {
	all := make(sdk.Meta, len(meta)+2)
	maps.Copy(all, meta)
	if r.Reviewer != "" {
		all[metaReviewer] = r.Reviewer
	}
	if !r.ReviewedAt.IsZero() {
		all[metaReviewed] = r.ReviewedAt.UTC().Format(time.RFC3339)
	}
	return all
}

// Digest is what Source.Digest is of a knowledge made of rows, without parsing them; empty where
// that is not known before they are read.
func Digest(block *pipeline.Knowledge) (string, error) {
	var all []string
	for _, s := range block.Sources {
		var digest string
		var err error
		if s.Reviewed {
			digest, err = digestOfDecisions(s.Path)
		} else {
			digest, err = source.Digest(s.Path)
		}
		if err != nil {
			return "", &SourceError{s.Range, err}
		}
		if digest == "" {
			return "", nil
		}
		all = append(all, digest)
	}
	return digestOf(all), nil
}

// digestOf is the digest of several sources: of one alone its own.
func digestOf(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:])
}

// none is the digest of a file of decisions that is not there yet.
const none = "none"

func digestOfDecisions(path string) (string, error) {
	digest, err := source.Digest(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	return digest, err
}

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
