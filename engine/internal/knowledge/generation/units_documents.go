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
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/sdk"
)

// Metadata of every chunk, beside the metadata of its document and its chunker.
const (
	metaDocument = "document" // id of the document
	metaStart    = "start"    // first byte of the chunk in the document's text
	metaEnd      = "end"      // the byte after the last byte of the chunk
	metaHeader   = "header"   // length of a header in the entry's text that comes from elsewhere in the document; absent: none
)

// numbering counts lines or pages from 1, so that people find a chunk. end is the character that ends a line or
// page; first and last are names of metadata.
type numbering struct{ end, first, last string }

// numberingOf returns the numbering for a format; empty: a reader of the file sees no lines.
func numberingOf(format any) numbering {
	switch format {
	case "pdf":
		return numbering{"\f", "first_page", "last_page"}
	case "html", "docx", "pptx", "xlsx", "notebook", "mail", "epub":
		return numbering{}
	}
	return numbering{"\n", "first_line", "last_line"}
}

// Entries makes an entry of each chunk: its header and its text, with the place of the text alone. The hashes
// include the number of chunks: if a chunk is missing, the next build processes the document again.
func (d Document) Entries() []sdk.Entry {
	hash := binary.BigEndian.AppendUint32(bytes.Clone(d.Hash), uint32(len(d.Chunks)))
	entries := make([]sdk.Entry, len(d.Chunks))
	by := numberingOf(d.Meta["format"])
	number, counted := 1, 0 // line or page at the byte offset counted
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

// chunkID names a chunk by its document and its number in the document, from 0.
func chunkID(document string, number int) string { return document + "#" + strconv.Itoa(number) }

// InOrder compares candidates by their documents' ids, and within a document by place. A row counts
// as a document.
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

// Metadata that record who has decided about an entry, and when.
const (
	metaReviewer = "reviewer"
	metaReviewed = "reviewed_at"
)

// decided holds the decisions of people about the rows of a knowledge.
type decided struct {
	path    string
	digest  string
	rows    []reviewed.Row
	changes map[string]reviewed.Row // by the id of the row that each replaces; applied changes are removed
}

// readDecided reads the decisions in a file; nil: the path is empty.
func readDecided(path string, form sdk.LabelForm, reject func(InvalidRow)) (*decided, error) {
	if path == "" {
		return nil, nil
	}
	digest, err := digestOfDecisions(path) // before reading: if the file changes in between, it is read again
	if err != nil {
		return nil, err
	}
	d := &decided{path: path, digest: digest, changes: map[string]reviewed.Row{}}
	var errs []error
	d.rows, errs = reviewed.Read(path, form)
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

// revise applies the decision about a unit, and reports whether the unit stays.
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

// rest calls f with the rows that decisions add to the other sources.
func (d *decided) rest(places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) error {
	for _, r := range d.rows {
		at := InvalidRow{Path: d.path, Line: r.Line}
		if _, missed := d.changes[r.Replaces]; r.Replaces != "" {
			if missed && !r.Drops() { // dropping a missing row is no error
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

// Digest computes Source.Digest of a knowledge made of rows without parsing them; empty: the digest is unknown until
// they are read.
func Digest(block *pipeline.Knowledge) (string, error) {
	var all []string
	for _, s := range block.Sources {
		var digest string
		var err error
		switch {
		case s.Reviewed:
			digest, err = digestOfDecisions(s.Path)
		case s.Rows == nil:
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
	return digestOf(block, all), nil
}

// digestOf combines the digests of several sources; a single digest stays as it is. If labels are sets, the digest
// records that empty lists are read as sets. So sources that an earlier version read differently are read once more.
func digestOf(block *pipeline.Knowledge, all []string) string {
	if block.LabelForm().Many {
		all = append(all, sdk.NoLabels)
	}
	if len(all) == 1 {
		return all[0]
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:])
}

// none is the digest of a file of decisions that does not exist yet.
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
	s := &Source{places: make(map[string]InvalidRow, len(files)), sizes: make(map[string]int64, len(files))}
	s.load = s.loadDocuments(*block.Documents())
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

// keptBytes bounds the texts that a source keeps from one pass of a build to the next.
const keptBytes = 32 << 20

// loadDocuments reads documents. A build loads each of them twice, and the second time most come from memory.
func (s *Source) loadDocuments(set document.Set) loader {
	kept := &keptUnits{room: keptBytes, units: map[string]Unit{}}
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
			if known, ok := kept.take(u.ID); ok {
				err = f(known, nil)
			} else if d, hash, failed := folder.Read(ctx, u.ID); failed != nil {
				err = f(u, failed)
			} else {
				u.Text, u.Meta, u.Hash = d.Text, d.Meta, hash
				s.unread.Store(u.ID, d.Unread)
				kept.put(u)
				err = f(u, nil)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// keptUnits holds the texts of units, each until it is taken.
type keptUnits struct {
	mu    sync.Mutex
	room  int // bytes that are left
	units map[string]Unit
}

func (k *keptUnits) put(u Unit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.units[u.ID]; !ok && len(u.Text) <= k.room {
		k.units[u.ID] = u
		k.room -= len(u.Text)
	}
}

func (k *keptUnits) take(id string) (Unit, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	u, ok := k.units[id]
	if ok {
		delete(k.units, id)
		k.room += len(u.Text)
	}
	return u, ok
}
