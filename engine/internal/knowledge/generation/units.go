package generation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// This file reads the sources of a knowledge, and compares them with the store.
//
// Rows may come from several files, but ids must be unique over all of them. People's decisions (package reviewed) come
// last: they add rows, and change rows of the other files, which keep their ids. The metadata record who decided, and
// when.
//
// A unit is a row, or a document of a folder. A build processes it as a whole. Without a chunker a unit is one entry. A
// chunk's id consists of its document's id and the chunk's number; its hash combines the hash of the document's content
// with the number of chunks.
//
// A document is unchanged if the store has that many chunks, all with its hash. So a build recognises an unchanged
// document without chunking or parsing it. It processes the document again if a kill or a refusal omitted a part. The
// text of an entry is the chunk, after its header if it has one. The entry's lines, pages and bytes are those of the
// chunk.
//
// The texts of documents are read when they are needed. Rows stay in memory.
//
// The file makes no entries itself and writes nothing.

// HashBytes is the length of the hash of a unit's content.
const HashBytes = source.HashBytes

func readRows(_ context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
	s := &Source{places: map[string]InvalidRow{}, load: loadHeld}
	var err error
	s.Digest, s.Described, err = s.eachUnit(block, stdin, func(u Unit) error {
		s.Units = append(s.Units, u)
		return nil
	})
	return s, err
}

func loadHeld(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
	for _, u := range wanted {
		if err := cmp.Or(ctx.Err(), f(u, nil)); err != nil {
			return err
		}
	}
	return nil
}

// eachUnit calls f with each unit of a knowledge made of rows. It notes unusable rows and the places of units. It
// returns the digest of the sources, and the descriptions of labels. People's decisions follow the rows of the other
// files, and change or drop some of these. The rows of the table come last.
func (s *Source) eachUnit(block *pipeline.Knowledge, stdin io.Reader, f func(Unit) error) (digest string, labels map[string]sdk.Described, err error) {
	table, err := ReadTable(block)
	if err != nil {
		return "", nil, err
	}
	take := func(u Unit) error {
		table.take(&u)
		return f(u)
	}
	decided, err := readDecided(block.Reviewed(), block.LabelForm(), s.reject)
	if err != nil {
		at := slices.IndexFunc(block.Sources, func(s pipeline.Source) bool { return s.Reviewed })
		return "", nil, &SourceError{block.Sources[at].Range, err}
	}
	var digests []string
	for _, from := range block.Sources {
		if from.Reviewed || from.Describes != nil {
			continue
		}
		digest, err := s.eachRow(from, stdin, func(u Unit) error {
			if !decided.revise(&u) {
				return nil
			}
			return take(u)
		})
		if err != nil {
			return "", nil, &SourceError{from.Range, err}
		}
		digests = append(digests, digest)
	}
	if decided != nil {
		digests = append(digests, decided.digest)
		if err := decided.rest(s.places, s.reject, take); err != nil {
			return "", nil, err
		}
	}
	if table != nil {
		digests = append(digests, table.digest)
		if err := table.rest(s.places, s.reject, f); err != nil {
			return "", nil, err
		}
	}
	return digestOf(block, digests), table.described(), nil
}

// eachRow calls f with each usable row of a source block, and returns the digest of the source. It notes the unusable
// rows, the places of the rows, and labels that are read in another spelling.
func (s *Source) eachRow(from pipeline.Source, stdin io.Reader, f func(Unit) error) (digest string, err error) {
	r, err := from.Open(stdin)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			if note := r.Respelt(); note != "" {
				s.Respelt = append(s.Respelt, from.Path+": "+note)
			}
			return r.Digest(), nil
		}
		if err != nil {
			return "", named(from.Path, err)
		}
		file, line := row.Place()
		at := InvalidRow{Path: cmp.Or(file, from.Path), Line: line}
		if first, ok := s.places[row.ID]; row.Err == nil && row.ID != "" && ok {
			row.Err = &source.RowError{Err: repeated(row.ID, first, at)}
		}
		if row.Err != nil {
			at.Err = row.Err
			s.reject(at)
			continue
		}
		u := Unit{Text: row.Text, Label: row.Label, Context: row.Context, Meta: row.Meta, Hash: row.Hash()}
		u.ID = source.EntryID(row, u.Hash, s.places)
		s.places[u.ID] = at
		if err := f(u); err != nil {
			return "", err
		}
	}
}

// repeated returns the error of a row whose id belongs to an earlier row.
func repeated(id string, first, at InvalidRow) error {
	other := ""
	if first.Path != at.Path {
		other = " of " + first.Path
	}
	return fmt.Errorf("its id %q stands on line %d%s already; ids must be unique", id, first.Line, other)
}

// named adds the path to an error, unless the error names its file.
func named(path string, err error) error {
	if file := new(source.FileError); errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// Unit is a row or a document. Its hash depends on its content alone. Source.Load adds the text and
// metadata of a document.
type Unit = sdk.Entry

// Document is a unit with its chunks. Without a chunker, the whole text is one chunk; without text there is none.
type Document struct {
	Unit
	Chunks []sdk.Chunk
}

// Passages returns the chunks, each with its document.
func (d Document) Passages() []sdk.Passage {
	whole := &sdk.Document{ID: d.ID, Text: d.Text, Meta: d.Meta}
	all := make([]sdk.Passage, len(d.Chunks))
	for i, c := range d.Chunks {
		all[i] = sdk.Passage{Document: whole, Chunk: c}
	}
	return all
}

// Source lists the units of a knowledge's sources.
type Source struct {
	Units   []Unit
	Digest  string       // of the whole content
	Invalid []InvalidRow // the first MaxInvalid invalid rows
	Count   int          // number of all invalid rows
	Respelt []string     // notes on labels that are read in another spelling, at most one for each source block
	// Described has the descriptions of labels, by label; nil: there is no table.
	Described map[string]sdk.Described

	unread sync.Map              // document.Unread of the documents read so far, by id; a build commits meanwhile
	sizes  map[string]int64      // of documents, by id
	places map[string]InvalidRow // places of units, by id; Err is nil
	load   loader
}

// Size returns the bytes of a document's file; 0 for a row.
func (s *Source) Size(id string) int64 { return s.sizes[id] }

// A loader calls f with each wanted unit, complete, or with the error that makes it unusable. An
// error of f ends it.
type loader func(ctx context.Context, wanted []Unit, f func(Unit, error) error) error

// InvalidRow is an unusable row or document of the source.
type InvalidRow struct {
	Path string
	Line int // 0: a whole document
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

// SourceError says that a source block names something unreadable.
type SourceError struct {
	Range hcl.Range // of the source block
	Err   error
}

func (e *SourceError) Error() string { return e.Err.Error() }

func (e *SourceError) Unwrap() error { return e.Err }

// ReadSource reads the source of a block.
func ReadSource(ctx context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
	read, what, nothing := readRows, "rows", "%s holds no usable row: below the header a row needs a text"
	if block.Documents() != nil {
		read, what, nothing = listDocuments, "documents", "%s holds no document: name a folder, a glob such as docs/**/*.md, or a file of text, Markdown, HTML, PDF, docx, pptx, xlsx, ipynb, eml or source code"
	}
	s, err := read(ctx, block, stdin)
	if err == nil && len(s.Units) == 0 {
		if err = fmt.Errorf(nothing, block.Main().Path); len(s.Invalid) > 0 {
			err = fmt.Errorf("%d of %[1]d %s of %s cannot be used; the first: %s", s.Count, what, block.Main().Path, s.Invalid[0])
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

// Load calls f with each wanted unit, complete, or with the error that makes it unusable. An error
// of f ends it.
func (s *Source) Load(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
	return s.load(ctx, wanted, f)
}

// At combines the error of a unit with the unit's place.
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

// Stock lists the units in a store, and the entries that a build has replaced.
type Stock struct {
	cut      bool              // a chunker cuts units into chunks
	units    map[string]stored // by id; Replace removes its unit
	replaced map[string]bool   // entries whose content has changed, by id
}

// stored describes a unit in a store.
type stored struct {
	label   string
	hash    []byte // of the unit
	count   uint32 // number of entries that it should have
	numbers []int  // numbers of the entries that it has
	whole   bool   // all entries exist, made from one content
}

// TakeStock lists the units of a collection.
func TakeStock(ctx context.Context, store Store, collection string, cut bool) (*Stock, error) {
	s := &Stock{cut, map[string]stored{}, map[string]bool{}}
	err := Scan(ctx, store, collection, sdk.Scan{}, func(e sdk.Entry) {
		id, number := s.UnitOf(e.ID)
		hash, count := e.Hash, uint32(1)
		if cut && len(hash) == HashBytes+4 {
			count = binary.BigEndian.Uint32(hash[HashBytes:])
			hash = hash[:HashBytes]
		}
		u, known := s.units[id]
		if !known {
			u = stored{label: e.Label, hash: hash, count: count, whole: true}
		}
		u.whole = u.whole && u.count == count && bytes.Equal(u.hash, hash)
		u.numbers = append(u.numbers, number)
		s.units[id] = u
	})
	for id, u := range s.units {
		u.whole = u.whole && int(u.count) == len(u.numbers)
		s.units[id] = u
	}
	return s, err
}

// StockDifference lists the changes to make in a store.
type StockDifference struct {
	Todo   []Unit          // units whose entries are to be made
	Gone   []string        // ids of entries without a unit
	Labels map[string]bool // labels of all these, before and after
}

// Compare compares the units of a source with the stock, by the hash of their entries. With all set, it counts every
// unit as changed.
func (s *Stock) Compare(units []Unit, hash func([]byte) []byte, all bool) StockDifference {
	d := StockDifference{Labels: map[string]bool{}}
	there := make(map[string]bool, len(units))
	for _, u := range units {
		there[u.ID] = true
		old, known := s.units[u.ID]
		if known && !all && old.whole && bytes.Equal(old.hash, hash(u.Hash)) {
			delete(s.units, u.ID)
			continue
		}
		if known {
			d.Labels[old.label] = true
		}
		d.Labels[u.Label] = true
		d.Todo = append(d.Todo, u)
	}
	for id, old := range s.units {
		if !there[id] {
			d.Gone = append(d.Gone, s.idsOf(id, old.numbers)...)
			d.Labels[old.label] = true
			delete(s.units, id)
		}
	}
	return d
}

// Replace notes the new number of entries of a unit. It returns how many of them replace an entry,
// and the ids of entries that the unit no longer has.
func (s *Stock) Replace(unit string, entries int) (changed int, surplus []string) {
	var gone []int
	for _, n := range s.units[unit].numbers {
		if n >= entries {
			gone = append(gone, n)
			continue
		}
		changed++
		s.replaced[s.idOf(unit, n)] = true
	}
	delete(s.units, unit)
	return changed, s.idsOf(unit, gone)
}

// Replaced reports whether the content of an entry has changed.
func (s *Stock) Replaced(id string) bool { return s.replaced[id] }

// Rest returns the entries of units that turned out to be unusable, or that have vanished since the listing.
func (s *Stock) Rest() (ids []string) {
	for id, old := range s.units {
		ids = append(ids, s.idsOf(id, old.numbers)...)
	}
	return ids
}

// UnitOf returns the unit of an entry, and the entry's number in the unit.
func (s *Stock) UnitOf(id string) (unit string, number int) {
	at := strings.LastIndexByte(id, '#')
	if !s.cut || at < 0 {
		return id, 0
	}
	number, _ = strconv.Atoi(id[at+1:])
	return id[:at], number
}

func (s *Stock) idOf(unit string, number int) string {
	if s.cut {
		return chunkID(unit, number)
	}
	return unit
}

func (s *Stock) idsOf(unit string, numbers []int) []string {
	ids := make([]string, len(numbers))
	for i, n := range numbers {
		ids[i] = s.idOf(unit, n)
	}
	return ids
}
