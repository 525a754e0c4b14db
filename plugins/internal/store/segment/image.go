package segment

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"unsafe"
)

// This file has the checksum of all files of the store, and the error for bytes that do not match their checksum.

// This file is the container of a segment: a header, a table and sections of bytes, in a mapped file or in memory. It
// is written once and protected by checksums. The file knows the names of the sections but not their content.
// format.md describes the bytes.

// Image holds the bytes of a segment, and the content of its header.
type Image struct {
	Path      string // empty: in memory
	Bytes     []byte
	Name      uint64
	Dimension int
	Rows      int
	Words     uint64 // of all rows
	Lexical   bool
	Sparse    bool // its vectors are sparse
	Table     [SectionCount]extent
}

// The layout of a segment; see format.md.
const (
	ImageVersion = 1
	ImageHeader  = 64
	EntrySize    = 24 // size of an entry in the table of sections
	ImageStart   = (ImageHeader + int(SectionCount)*EntrySize + alignment - 1) &^ (alignment - 1)
	alignment    = 64
	checksumAt   = 56

	sparseVersion = ImageVersion + 1 // of a segment with sparse vectors
)

var magic = [8]byte([]byte("racsegmt"))

// imageHeader is the first HeaderSize bytes. The checksum covers everything before it, and the table.
type imageHeader struct {
	Magic                       [8]byte
	Version, Dimension          uint32
	Name, Rows, Size, Words     uint64
	Lexical, Sections, Checksum uint32
	_                           uint32
}

func (h *imageHeader) append(b []byte) []byte {
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
	VectorNumbers // all numbers, or the non-zero ones of sparse vectors
	Codes         // of sparse vectors their ends instead
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

// SectionNames are for error messages.
var SectionNames = [SectionCount]string{
	"records", "strings", "directory of ids", "ends of labels", "labels", "vectors", "int8 codes", "quantisation scales", "word counts of rows",
	"directory of words", "ends of words", "words", "rows of words", "counts of words", "large counts of words",
	"ends of values", "values", "rows of values",
}

// Unread are the sections whose checksums are not compared when a file is opened, because reading them takes too
// long. Code that uses them guards against numbers out of range.
var Unread = map[Section]bool{
	Strings: true, VectorNumbers: true, Codes: true,
	TermRows: true, TermCounts: true, ValueRows: true,
}

// extent is the position of a section, and its checksum.
type extent struct {
	Offset, Length uint64
	checksum       uint32
	_              uint32
}

// ParseImage reads the header and the table of sections.
func ParseImage(b []byte, path string) (*Image, error) {
	var h imageHeader
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil || h.Magic != magic {
		return nil, Damage(path, 0, "not a racflow segment")
	}
	switch {
	case h.Version != ImageVersion && h.Version != sparseVersion:
		return nil, fmt.Errorf("%s has version %d and this racflow reads versions %d and %d: use a newer racflow, or another state folder",
			path, h.Version, ImageVersion, sparseVersion)
	case h.Size != uint64(len(b)):
		return nil, Damage(path, int64(len(b)), fmt.Sprintf("it should have %d bytes", h.Size))
	case h.Sections != uint32(SectionCount) || len(b) < ImageStart:
		return nil, Damage(path, 52, "unexpected content")
	case h.Checksum != HeaderChecksum(b):
		return nil, Damage(path, 0, "checksum of the header")
	case h.Rows > MaxRows || h.Dimension > MaxDimension:
		return nil, Damage(path, 0, "unexpected content")
	}
	m := &Image{
		Path: path, Bytes: b, Name: h.Name, Dimension: int(h.Dimension), Rows: int(h.Rows), Words: h.Words, Lexical: h.Lexical == 1,
		Sparse: h.Version == sparseVersion,
	}
	copy(bytesOf(m.Table[:]), b[ImageHeader:])
	for i, e := range m.Table {
		if e.Offset%alignment != 0 || e.Offset > uint64(len(b)) || e.Length > uint64(len(b))-e.Offset {
			return nil, Damage(path, int64(ImageHeader+i*EntrySize), "unexpected content")
		}
	}
	return m, nil
}

// HeaderChecksum is the checksum of the header up to the checksum field, and of the table.
func HeaderChecksum(b []byte) uint32 {
	return Checksum(Checksum(0, b[:checksumAt]), b[ImageHeader:ImageHeader+int(SectionCount)*EntrySize])
}

func (m *Image) section(s Section) []byte {
	e := m.Table[s]
	return m.Bytes[e.Offset : e.Offset+e.Length : e.Offset+e.Length]
}

// Verify compares the checksum of a section.
func (m *Image) Verify(s Section) error {
	if e := m.Table[s]; Checksum(0, m.section(s)) != e.checksum {
		return Damage(m.Path, int64(e.Offset), "checksum of the "+SectionNames[s])
	}
	return nil
}

// verifyEach compares the checksums that opening compares or, if others is set, the other ones.
func (m *Image) verifyEach(others bool) error {
	for s := range SectionCount {
		if Unread[s] == others {
			if err := m.Verify(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// viewOf returns a section as values of a type without pointers. Sections are aligned for any such type, and the
// machine is little-endian; see open.
func viewOf[T any](m *Image, s Section) []T {
	b := m.section(s)
	var one T
	if len(b) < int(unsafe.Sizeof(one)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

// Text returns a section as a string, which is valid as long as the image is.
func (m *Image) Text(s Section) string {
	b := m.section(s)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// bytesOf returns the memory of values without pointers.
func bytesOf[T any](values []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(one)))
}

// LittleEndian reports whether this machine has the byte order of the files.
func LittleEndian() bool { return bytesOf([]uint16{1})[0] == 1 }

// DamageError is the error for committed bytes that have changed since.
type DamageError struct {
	Path   string
	Offset int64
	what   string
}

func (d *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (%s): restore it from a copy, or delete its folder and build the knowledge again",
		d.Path, d.Offset, d.what)
}

// Damage returns the error for damage in a file at an offset.
func Damage(path string, offset int64, what string) error { return &DamageError{path, offset, what} }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum continues a CRC-32C with more bytes. The first sum is 0.
func Checksum(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// ImageFile is the destination of an image: an empty file, or Memory.
type ImageFile interface {
	io.Writer
	io.WriterAt
}

// ImageWriter writes an image section by section, then its header. After an error it writes nothing more; Finish
// returns the error.
type ImageWriter struct {
	file    ImageFile
	buf     *bufio.Writer // writes to passing
	passed  uint64
	sum     uint32 // checksum of the section
	open    bool
	section Section // the open section
	table   [SectionCount]extent
}

// passing is the io.Writer behind the ImageWriter's buffer.
type passing struct{ *ImageWriter }

func (w passing) Write(b []byte) (int, error) {
	w.sum = Checksum(w.sum, b)
	w.passed += uint64(len(b))
	return w.file.Write(b)
}

// NewImageWriter begins an image at the start of an empty file.
func NewImageWriter(to ImageFile) *ImageWriter {
	w := &ImageWriter{file: to}
	w.buf = bufio.NewWriterSize(passing{w}, 256<<10)
	w.Write(make([]byte, ImageStart))
	return w
}

// Begin ends the previous section and starts another.
func (w *ImageWriter) Begin(s Section) {
	w.end()
	w.Write(make([]byte, -w.passed&(alignment-1)))
	_ = w.buf.Flush()
	w.section, w.open, w.sum = s, true, 0
	w.table[s].Offset = w.passed
}

func (w *ImageWriter) end() {
	_ = w.buf.Flush() // the next Flush returns the error
	if w.open {
		e := &w.table[w.section]
		e.Length, e.checksum, w.open = w.passed-e.Offset, w.sum, false
	}
}

// Write continues the section.
func (w *ImageWriter) Write(b []byte) { _, _ = w.buf.Write(b) }

// WriteString continues the section.
func (w *ImageWriter) WriteString(s string) { _, _ = w.buf.WriteString(s) }

// writeUint32 continues the section.
func (w *ImageWriter) writeUint32(x uint32) {
	w.Write(binary.LittleEndian.AppendUint32(w.buf.AvailableBuffer(), x))
}

// writeSection writes a section of numbers, or of other values without pointers.
func writeSection[T any](w *ImageWriter, s Section, values []T) {
	w.Begin(s)
	w.Write(bytesOf(values))
}

// Finish writes the header with the fields of m.
func (w *ImageWriter) Finish(m Image) error {
	w.end()
	for i := range w.table {
		if w.table[i].Offset == 0 { // not written
			w.table[i].Offset = uint64(ImageStart)
		}
	}
	h := imageHeader{
		Magic: magic, Version: ImageVersion, Dimension: uint32(m.Dimension), Name: m.Name, Rows: uint64(m.Rows), Size: w.passed, Words: m.Words,
		Sections: uint32(SectionCount),
	}
	if m.Lexical {
		h.Lexical = 1
	}
	if m.Sparse {
		h.Version = sparseVersion
	}
	b := h.append(make([]byte, 0, ImageStart))
	b = append(b, bytesOf(w.table[:])...)
	binary.LittleEndian.PutUint32(b[checksumAt:], HeaderChecksum(b))
	if err := w.buf.Flush(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(b, 0)
	return err
}

// Memory is a file in memory.
type Memory struct{ Bytes []byte }

// Write implements io.Writer.
func (m *Memory) Write(b []byte) (int, error) {
	m.Bytes = append(m.Bytes, b...)
	return len(b), nil
}

// WriteAt implements io.WriterAt. It does not grow the file.
func (m *Memory) WriteAt(b []byte, at int64) (int, error) { return copy(m.Bytes[at:], b), nil }

// Aligned returns a copy of b with an alignment for views of any type.
func Aligned(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	words := make([]uint64, (len(b)+7)/8)
	to := bytesOf(words)[:len(b)]
	copy(to, b)
	return to
}
