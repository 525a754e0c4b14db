package image

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/racflow/racflow/plugins/store/local/internal/integrity"
)

// File is what an image is written to: an empty file, or Memory.
type File interface {
	io.Writer
	io.WriterAt
}

// Writer writes an image, section by section, then its header. After an error it
// does nothing more; Finish returns it.
type Writer struct {
	file    File
	buf     *bufio.Writer // of the Writer's passed
	passed  uint64
	sum     uint32 // of the section
	open    bool
	section Section // that is open
	table   [SectionCount]extent
}

// passing is the Writer behind its buffer.
type passing struct{ *Writer }

func (w passing) Write(b []byte) (int, error) {
	w.sum = integrity.Checksum(w.sum, b)
	w.passed += uint64(len(b))
	return w.file.Write(b)
}

// NewWriter begins an image at the start of an empty file.
func NewWriter(to File) *Writer {
	w := &Writer{file: to}
	w.buf = bufio.NewWriterSize(passing{w}, 256<<10)
	w.Write(make([]byte, Start))
	return w
}

// Begin ends the section before and starts another.
func (w *Writer) Begin(s Section) {
	w.end()
	w.Write(make([]byte, -w.passed&(alignment-1)))
	_ = w.buf.Flush()
	w.section, w.open, w.sum = s, true, 0
	w.table[s].Offset = w.passed
}

func (w *Writer) end() {
	_ = w.buf.Flush() // it keeps its error for the next one
	if w.open {
		e := &w.table[w.section]
		e.Length, e.checksum, w.open = w.passed-e.Offset, w.sum, false
	}
}

// Write continues the section.
func (w *Writer) Write(b []byte) { _, _ = w.buf.Write(b) }

// WriteString continues the section.
func (w *Writer) WriteString(s string) { _, _ = w.buf.WriteString(s) }

// WriteUint32 continues the section.
func (w *Writer) WriteUint32(x uint32) {
	w.Write(binary.LittleEndian.AppendUint32(w.buf.AvailableBuffer(), x))
}

// WriteSection writes a section of numbers, or of other values without pointers.
func WriteSection[T any](w *Writer, s Section, values []T) {
	w.Begin(s)
	w.Write(Bytes(values))
}

// Finish writes the header with what is in m.
func (w *Writer) Finish(m Image) error {
	w.end()
	for i := range w.table {
		if w.table[i].Offset == 0 { // not written
			w.table[i].Offset = uint64(Start)
		}
	}
	h := header{
		Magic: magic, Version: Version, Dimension: uint32(m.Dimension), Name: m.Name, Rows: uint64(m.Rows), Size: w.passed, Words: m.Words,
		Sections: uint32(SectionCount),
	}
	if m.Lexical {
		h.Lexical = 1
	}
	b := h.append(make([]byte, 0, Start))
	b = append(b, Bytes(w.table[:])...)
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

// WriteAt implements io.WriterAt; it does not make the file longer.
func (m *Memory) WriteAt(b []byte, at int64) (int, error) { return copy(m.Bytes[at:], b), nil }

// Aligned returns a copy of b that views of any type can be taken of.
func Aligned(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	words := make([]uint64, (len(b)+7)/8)
	to := Bytes(words)[:len(b)]
	copy(to, b)
	return to
}
