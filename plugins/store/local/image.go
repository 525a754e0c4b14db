package local

import (
	"fmt"
	"hash/crc32"
	"slices"
	"unsafe"
)

// The layout of a segment; see format.md.
const (
	segmentMagic   = "racsegmt"
	segmentVersion = 1
	imageHeader    = 64
	tableEntry     = 24
	alignment      = 64
	imageStart     = (imageHeader + int(sections)*tableEntry + alignment - 1) &^ (alignment - 1)
)

// section numbers the parts of a segment's image.
type section uint8

const (
	sectionRecords section = iota
	sectionHeap
	sectionDirectory
	sectionLabelEnds
	sectionLabelText
	sectionVectors
	sectionCodes
	sectionGrids
	sectionLengths
	sectionWordDirectory
	sectionWordEnds
	sectionWordText
	sectionWordRows
	sectionWordCounts
	sectionWordMore
	sectionValueEnds
	sectionValueText
	sectionValueRows
	sections
)

// sectionNames are for error messages.
var sectionNames = [sections]string{
	"records", "strings", "directory of ids", "ends of labels", "labels", "vectors", "coarse vectors", "grids", "word counts of rows",
	"directory of words", "ends of words", "words", "rows of words", "counts of words", "large counts of words",
	"ends of values", "values", "rows of values",
}

// unread are the sections whose checksums only Check compares: to read them all
// would take too long when a collection is opened. Whoever uses what stands in
// them takes care that it cannot lead outside the image.
var unread = map[section]bool{
	sectionHeap: true, sectionVectors: true, sectionCodes: true,
	sectionWordRows: true, sectionWordCounts: true, sectionValueRows: true,
}

// image is the bytes of a segment, and what its header says.
type image struct {
	bytes     []byte
	name      uint64
	dimension int
	rows      int
	words     uint64 // of all rows
	lexical   bool
	table     [sections]extent
}

// extent is where a section stands and what its checksum is.
type extent struct {
	offset, length uint64
	checksum       uint32
	_              uint32
}

// parseImage reads the header and the table of sections.
func parseImage(b []byte, path string) (*image, error) {
	if len(b) < imageHeader || string(b[:8]) != segmentMagic {
		return nil, &damaged{path, 0, "not a racflow segment"}
	}
	if v := le.Uint32(b[8:]); v != segmentVersion {
		return nil, fmt.Errorf("%s has version %d and this racflow reads version %d: use a newer racflow, or another state folder", path, v, segmentVersion)
	}
	if size := le.Uint64(b[32:]); size != uint64(len(b)) {
		return nil, &damaged{path, int64(len(b)), fmt.Sprintf("it should have %d bytes", size)}
	}
	if le.Uint32(b[52:]) != uint32(sections) || len(b) < imageStart {
		return nil, &damaged{path, 52, "unexpected content"}
	}
	if le.Uint32(b[56:]) != headerChecksum(b) {
		return nil, &damaged{path, 0, "checksum of the header"}
	}
	m := &image{
		bytes: b, name: le.Uint64(b[16:]), dimension: int(le.Uint32(b[12:])),
		words: le.Uint64(b[40:]), lexical: le.Uint32(b[48:]) == 1,
	}
	rows := le.Uint64(b[24:])
	if rows > maxRows || m.dimension > maxDimension {
		return nil, &damaged{path, 0, "unexpected content"}
	}
	m.rows = int(rows)
	copy(bytesOf(m.table[:]), b[imageHeader:])
	for i, e := range m.table {
		if e.offset%alignment != 0 || e.offset > uint64(len(b)) || e.length > uint64(len(b))-e.offset {
			return nil, &damaged{path, int64(imageHeader + i*tableEntry), "unexpected content"}
		}
	}
	return m, nil
}

// headerChecksum is that of the header up to the checksum, and of the table.
func headerChecksum(b []byte) uint32 {
	return checksum(b[:56], b[imageHeader:imageHeader+int(sections)*tableEntry])
}

func (m *image) section(s section) []byte {
	e := m.table[s]
	return m.bytes[e.offset : e.offset+e.length : e.offset+e.length]
}

// verify compares the checksum of a section.
func (m *image) verify(s section, path string, read func()) error {
	sum := uint32(0)
	for part := range slices.Chunk(m.section(s), 8<<20) {
		sum = crc32.Update(sum, castagnoli, part)
		read()
	}
	if e := m.table[s]; sum != e.checksum {
		return &damaged{path, int64(e.offset), "checksum of the " + sectionNames[s]}
	}
	return nil
}

// view is a section as values of a type without pointers. Sections are aligned
// for any of them, and machines that run this are little-endian; see open.
func view[T any](m *image, s section) []T {
	b := m.section(s)
	var one T
	if len(b) < int(unsafe.Sizeof(one)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

// text is a section as a string, which is valid as long as the image is.
func (m *image) text(s section) string {
	b := m.section(s)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// bytesOf is the memory of values without pointers.
func bytesOf[T any](values []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(one)))
}

// littleEndian reports whether this machine keeps numbers as the files do.
func littleEndian() bool { return bytesOf([]uint16{1})[0] == 1 }
