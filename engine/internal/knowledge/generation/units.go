package generation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/sdk"
)

// This file reads what the sources of a knowledge are made of, and compares it with what a
// store holds of them.
//
// Rows may come from several files, in none of which an id stands that another has. What people
// have decided (package reviewed) comes last: rows of its own, and changes of rows of the other
// files, which keep their ids. Metadata say who decided, and when.
//
// A unit is a row, or a document of a folder. It is redone as a whole, and is one
// entry unless the block has a chunker. Chunks are named after their document and
// their number in it; their hash is that of the document's content with the number of
// its chunks. A document is unchanged if the store has that many of them, all with its
// hash, so that it is recognised without being cut or even looked into, and redone
// where a kill or a refusal left out a part. The text of an entry is the header of its
// chunk, where it has one, and the chunk; its lines, pages and bytes are those of the chunk.
//
// Texts of documents are read when they are wanted, and so are rows that are cut:
// their file is read a second time. Rows that are not cut, and standard input, are
// held.
//
// It makes no entries of its own accord and writes nothing.

// HashBytes is the length of the hash of a unit's content.
const HashBytes = source.HashBytes

func readRows(_ context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
	s := &Source{places: map[string]InvalidRow{}, load: loadHeld}
	again := false
	if block.Chunk != nil && !block.Stdin() {
		again = true
		for _, one := range block.Sources {
			again = again && (one.Reviewed || source.Regular(one.Path))
		}
	}
	if again {
		s.load = loadRows(block)
	}
	var err error
	s.Digest, err = eachUnit(block, stdin, s.places, s.reject, func(u Unit) error {
		if again {
			u.Text, u.Meta, u.Context = "", nil, ""
		}
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

// loadRows reads the files again.
func loadRows(block *pipeline.Knowledge) loader {
	return func(ctx context.Context, wanted []Unit, f func(Unit, error) error) error {
		ids := make(map[string]bool, len(wanted))
		for _, u := range wanted {
			ids[u.ID] = true
		}
		_, err := eachUnit(block, nil, map[string]InvalidRow{}, func(InvalidRow) {}, func(u Unit) error {
			if err := ctx.Err(); err != nil || !ids[u.ID] {
				return err
			}
			return f(u, nil)
		})
		return err
	}
}

// eachUnit calls f with each unit of a knowledge made of rows, and reject with the rows that
// cannot be used. It notes the places of the units, by id, and returns the digest of the sources.
// What people have decided changes or drops rows of the others, and comes after them.
func eachUnit(block *pipeline.Knowledge, stdin io.Reader, places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) (digest string, err error) {
	decided, err := readDecided(block.Reviewed(), reject)
	if err != nil {
		return "", &SourceError{block.Sources[len(block.Sources)-1].Range, err}
	}
	var digests []string
	for _, s := range block.Sources {
		if s.Reviewed {
			continue
		}
		digest, err := eachRow(s, stdin, places, reject, func(u Unit) error {
			if !decided.revise(&u) {
				return nil
			}
			return f(u)
		})
		if err != nil {
			return "", &SourceError{s.Range, err}
		}
		digests = append(digests, digest)
	}
	if decided != nil {
		digests = append(digests, decided.digest)
		if err := decided.rest(places, reject, f); err != nil {
			return "", err
		}
	}
	return digestOf(digests), nil
}

// eachRow calls f with each usable row of a source and its place, and reject with the others.
// places are those of the rows before, by id. It returns the digest of the source.
func eachRow(s pipeline.Source, stdin io.Reader, places map[string]InvalidRow, reject func(InvalidRow), f func(Unit) error) (digest string, err error) {
	r, err := s.Open(stdin)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Digest(), nil
		}
		if err != nil {
			return "", named(s.Path, err)
		}
		file, line := row.Place()
		at := InvalidRow{Path: cmp.Or(file, s.Path), Line: line}
		if first, ok := places[row.ID]; row.Err == nil && row.ID != "" && ok {
			row.Err = repeated(row.ID, first, at)
		}
		if row.Err != nil {
			at.Err = row.Err
			reject(at)
			continue
		}
		u := Unit{Text: row.Text, Label: row.Label, Context: row.Context, Meta: row.Meta, Hash: row.Hash()}
		u.ID = source.EntryID(row, u.Hash, places)
		places[u.ID] = at
		if err := f(u); err != nil {
			return "", err
		}
	}
}

// repeated says that the id of a row is that of another one.
func repeated(id string, first, at InvalidRow) error {
	other := ""
	if first.Path != at.Path {
		other = " of " + first.Path
	}
	return fmt.Errorf("its id %q stands on line %d%s already; ids must be unique", id, first.Line, other)
}

// named says of an error what was read, unless it says that itself.
func named(path string, err error) error {
	if file := new(source.FileError); errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("read %s: %w", path, err)
}

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

// ReadSource reads what the source of a block holds. Of rows that are cut only the hashes
// are kept, unless they can be read only once.
func ReadSource(ctx context.Context, block *pipeline.Knowledge, stdin io.Reader) (*Source, error) {
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

// Stock is what a store holds of units, and what a build has replaced of that.
type Stock struct {
	cut      bool              // units are cut into chunks
	units    map[string]stored // by id; those that Replace was not called with yet
	replaced map[string]bool   // entries that got another content
}

// stored is what a store holds of a unit.
type stored struct {
	label   string
	hash    []byte // of the unit
	count   uint32 // entries that it should have
	numbers []int  // of those that it has
	whole   bool   // all of them are there, made of one content
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

// StockDifference is what has to be done to a store.
type StockDifference struct {
	Todo   []Unit          // units to make entries of
	Gone   []string        // entries whose unit is gone
	Labels map[string]bool // of all of these, before and after
}

// Compare compares the units of a source with the stock, by the hash that their
// entries get; all of them are to be made again if all is set.
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

// Replace notes that a unit now has so many entries. It returns how many of them
// replace one, and the ids of those that the unit no longer has.
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

// Replaced reports whether an entry got another content.
func (s *Stock) Replaced(id string) bool { return s.replaced[id] }

// Rest returns the entries of units that turned out to be unusable, or that are gone
// since they were listed.
func (s *Stock) Rest() (ids []string) {
	for id, old := range s.units {
		ids = append(ids, s.idsOf(id, old.numbers)...)
	}
	return ids
}

// UnitOf returns the unit that an entry belongs to, and the entry's number in it.
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
