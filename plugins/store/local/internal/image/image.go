package image

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/racflow/racflow/plugins/store/local/internal/integrity"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
)

// The layout of a segment; see format.md.
const (
	Version    = 1
	HeaderSize = 64
	EntrySize  = 24 // of the table of sections
	Start      = (HeaderSize + int(SectionCount)*EntrySize + alignment - 1) &^ (alignment - 1)
	alignment  = 64
	checksumAt = 56
)

var magic = [8]byte([]byte("racsegmt"))

// header is the first HeaderSize bytes. The checksum covers what is before it, and the
// table.
type header struct {
	Magic                       [8]byte
	Version, Dimension          uint32
	Name, Rows, Size, Words     uint64
	Lexical, Sections, Checksum uint32
	_                           uint32
}

func (h *header) append(b []byte) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, h) // fails only for other types
	return b
}

// Section numbers the parts of a segment's image.
type Section uint8

// The sections, in the order of the table.
const (
	Records Section = iota
	Strings
	IDs
	LabelEnds
	LabelText
	Vectors
	Codes
	Quantisations
	Lengths
	TermTable
	TermEnds
	TermText
	TermRows
	TermCounts
	TermLargeCounts
	ValueEnds
	ValueText
	ValueRows
	SectionCount
)

// Names are for error messages.
var Names = [SectionCount]string{
	"records", "strings", "directory of ids", "ends of labels", "labels", "vectors", "int8 codes", "quantisation scales", "word counts of rows",
	"directory of words", "ends of words", "words", "rows of words", "counts of words", "large counts of words",
	"ends of values", "values", "rows of values",
}

// Unread are the sections whose checksums opening does not compare, because reading
// them takes too long. Code that uses them guards against numbers that lead outside.
var Unread = map[Section]bool{
	Strings: true, Vectors: true, Codes: true,
	TermRows: true, TermCounts: true, ValueRows: true,
}

// Image is the bytes of a segment, and what its header says.
type Image struct {
	Path      string // empty: in memory
	Bytes     []byte
	Name      uint64
	Dimension int
	Rows      int
	Words     uint64 // of all rows
	Lexical   bool
	Table     [SectionCount]extent
}

// extent is where a section stands and what its checksum is.
type extent struct {
	Offset, Length uint64
	checksum       uint32
	_              uint32
}

// Parse reads the header and the table of sections.
func Parse(b []byte, path string) (*Image, error) {
	var h header
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil || h.Magic != magic {
		return nil, integrity.Damage(path, 0, "not a racflow segment")
	}
	switch {
	case h.Version != Version:
		return nil, fmt.Errorf("%s has version %d and this racflow reads version %d: use a newer racflow, or another state folder", path, h.Version, Version)
	case h.Size != uint64(len(b)):
		return nil, integrity.Damage(path, int64(len(b)), fmt.Sprintf("it should have %d bytes", h.Size))
	case h.Sections != uint32(SectionCount) || len(b) < Start:
		return nil, integrity.Damage(path, 52, "unexpected content")
	case h.Checksum != HeaderChecksum(b):
		return nil, integrity.Damage(path, 0, "checksum of the header")
	case h.Rows > row.MaxRows || h.Dimension > row.MaxDimension:
		return nil, integrity.Damage(path, 0, "unexpected content")
	}
	m := &Image{
		Path: path, Bytes: b, Name: h.Name, Dimension: int(h.Dimension), Rows: int(h.Rows), Words: h.Words, Lexical: h.Lexical == 1,
	}
	copy(Bytes(m.Table[:]), b[HeaderSize:])
	for i, e := range m.Table {
		if e.Offset%alignment != 0 || e.Offset > uint64(len(b)) || e.Length > uint64(len(b))-e.Offset {
			return nil, integrity.Damage(path, int64(HeaderSize+i*EntrySize), "unexpected content")
		}
	}
	return m, nil
}

// HeaderChecksum is that of the header up to the checksum, and of the table.
func HeaderChecksum(b []byte) uint32 {
	return integrity.Checksum(integrity.Checksum(0, b[:checksumAt]), b[HeaderSize:HeaderSize+int(SectionCount)*EntrySize])
}

func (m *Image) section(s Section) []byte {
	e := m.Table[s]
	return m.Bytes[e.Offset : e.Offset+e.Length : e.Offset+e.Length]
}

// Verify compares the checksum of a section. Of the large ones it keeps little in
// memory.
func (m *Image) Verify(s Section) error {
	sum := uint32(0)
	for part := range slices.Chunk(m.section(s), 8<<20) {
		sum = integrity.Checksum(sum, part)
		if Unread[s] {
			m.Release()
		}
	}
	if e := m.Table[s]; sum != e.checksum {
		return integrity.Damage(m.Path, int64(e.Offset), "checksum of the "+Names[s])
	}
	return nil
}

// VerifyEach compares the checksums that opening compares, or the others.
func (m *Image) VerifyEach(others bool) error {
	for s := range SectionCount {
		if Unread[s] == others {
			if err := m.Verify(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release takes what was read of the file out of memory, which whoever reads all of
// it does now and then. Others do not notice.
func (m *Image) Release() {
	if m.Path != "" {
		forget(m.Bytes)
	}
}

// View is a section as values of a type without pointers. Sections are aligned
// for any of them, and machines that run this are little-endian; see open.
func View[T any](m *Image, s Section) []T {
	b := m.section(s)
	var one T
	if len(b) < int(unsafe.Sizeof(one)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

// Text is a section as a string, which is valid as long as the image is.
func (m *Image) Text(s Section) string {
	b := m.section(s)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Bytes is the memory of values without pointers.
func Bytes[T any](values []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(one)))
}

// LittleEndian reports whether this machine keeps numbers as the files do.
func LittleEndian() bool { return Bytes([]uint16{1})[0] == 1 }
