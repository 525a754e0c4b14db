package local

import (
	"fmt"
	"path/filepath"
	"runtime"
)

// maxRows bounds the rows of a collection, deleted ones counted until they are
// merged away.
const maxRows = 1<<31 - 1<<16

// segment is some rows with everything that is needed to search them: an image,
// mapped from a file or made in memory, and views of its sections. It never
// changes. Strings and slices taken from it are valid as long as it is
// reachable: whoever keeps one longer copies it, and whoever works on them keeps
// the segment alive; see collection.read.
type segment struct {
	*image
	path string // empty: in memory

	records []record
	heap    string
	ids     directory
	labels  texts
	exact   []float32
	codes   []int8
	grids   []grid
	lengths []float32 // words of a row
	terms   terms
	values  lists
}

// record is the part of a row that has a fixed size. Its strings stand one after
// another in the heap: id, hash, context, text, meta.
type record struct {
	sequence, start               uint64
	id, hash, context, text, meta uint32 // lengths
	label                         uint32
}

// row is an entry without its vector; meta is encoded.
type row struct {
	sequence                             uint64
	id, label, hash, context, text, meta string
}

// size is what a row takes in a log.
func (r *row) size(dimension int) int64 {
	const sequenceAndLengths = 8 + 6*4
	return int64(sequenceAndLengths + len(r.id) + len(r.label) + len(r.hash) + len(r.context) + len(r.text) + len(r.meta) + 4*dimension)
}

// segmentPath is the file of the segment with a name.
func segmentPath(dir string, name uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", name, segmentSuffix))
}

const segmentSuffix = ".segment"

// openSegment maps the file of a segment.
func openSegment(path string) (*segment, error) {
	b, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	s, err := newSegment(b, path)
	if err == nil {
		for i := section(0); i < sections && err == nil; i++ {
			if !unread[i] {
				err = s.verify(i, path, func() {})
			}
		}
	}
	if err != nil {
		unmap()
		return nil, err
	}
	runtime.AddCleanup(s, func(unmap func()) { unmap() }, unmap)
	return s, nil
}

// verifyRest compares the checksums that opening the file of a segment leaves out.
// Whoever copies the rows does so first, for the copy gets checksums of its own:
// damage would become what is right.
func (s *segment) verifyRest() error {
	if s.path == "" {
		return nil
	}
	for i := section(0); i < sections; i++ {
		if unread[i] {
			if err := s.verify(i, s.path, s.release); err != nil {
				return err
			}
		}
	}
	return nil
}

// release takes what was read of the segment's file out of memory, which whoever
// reads all of it does now and then. Others do not notice.
func (s *segment) release() {
	if s.path != "" {
		forget(s.bytes)
	}
}

// newSegment makes views of an image. It checks that the sections have the sizes
// that belong to the header; what stands in them is checked where it is used.
func newSegment(b []byte, path string) (*segment, error) {
	m, err := parseImage(b, path)
	if err != nil {
		return nil, err
	}
	s := &segment{
		image: m, path: path,
		records: view[record](m, sectionRecords),
		heap:    m.text(sectionHeap),
		ids:     view[uint32](m, sectionDirectory),
		labels:  texts{view[uint64](m, sectionLabelEnds), m.text(sectionLabelText)},
		exact:   view[float32](m, sectionVectors),
		codes:   view[int8](m, sectionCodes),
		grids:   view[grid](m, sectionGrids),
		lengths: view[float32](m, sectionLengths),
		terms: terms{
			lists:     lists{view[listEnd](m, sectionWordEnds), m.text(sectionWordText), view[uint32](m, sectionWordRows)},
			directory: view[uint32](m, sectionWordDirectory),
			counts:    view[uint8](m, sectionWordCounts),
			more:      view[largeCount](m, sectionWordMore),
		},
		values: lists{view[listEnd](m, sectionValueEnds), m.text(sectionValueText), view[uint32](m, sectionValueRows)},
	}
	n, lexical := m.rows, 0
	if m.lexical {
		lexical = n
	}
	for _, size := range []struct {
		section section
		want    int
	}{
		{sectionRecords, n * recordSize}, {sectionDirectory, 4 * directorySize(n)},
		{sectionVectors, 4 * n * m.dimension}, {sectionCodes, n * width(m.dimension)}, {sectionGrids, gridSize(m.dimension) * n},
		{sectionLengths, 4 * lexical}, {sectionWordCounts, len(s.terms.rows)}, {sectionWordDirectory, 4 * directorySize(len(s.terms.ends))},
	} {
		if have := m.table[size.section].length; have != uint64(size.want) {
			return nil, &damaged{path, int64(m.table[size.section].offset), "length of the " + sectionNames[size.section]}
		}
	}
	return s, nil
}

const recordSize = 40

// gridSize is the size of a grid where there are vectors.
func gridSize(dimension int) int {
	if dimension == 0 {
		return 0
	}
	return 8
}

func (s *segment) id(r int32) string {
	rec := &s.records[r]
	return span(s.heap, rec.start, uint64(rec.id))
}

func (s *segment) row(r int32) row {
	rec := &s.records[r]
	at := rec.start
	next := func(length uint32) string {
		text := span(s.heap, at, uint64(length))
		at += uint64(length)
		return text
	}
	return row{
		sequence: rec.sequence, id: next(rec.id), hash: next(rec.hash), context: next(rec.context),
		text: next(rec.text), meta: next(rec.meta), label: s.labels.at(int(rec.label)),
	}
}

func (s *segment) label(r int32) string { return s.labels.at(int(s.records[r].label)) }

func (s *segment) vector(r int32) []float32 { return s.exact[int(r)*s.dimension:][:s.dimension] }

// find returns the row with an id, or -1.
func (s *segment) find(hash uint64, id string) int32 {
	return s.ids.find(hash, func(i uint32) bool { return int(i) < s.rows && s.id(int32(i)) == id })
}

// span returns length bytes of a text, and nothing where it has not as many.
func span(text string, from, length uint64) string {
	if from > uint64(len(text)) || length > uint64(len(text))-from {
		return ""
	}
	return text[from : from+length]
}

// texts is a list of strings, one after another.
type texts struct {
	ends []uint64
	text string
}

func (t texts) at(i int) string {
	if i < 0 || i >= len(t.ends) {
		return ""
	}
	from := uint64(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return span(t.text, from, t.ends[i]-from)
}
