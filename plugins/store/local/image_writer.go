package local

import (
	"hash/crc32"
	"io"
	"unsafe"
)

// imageWriter writes an image, section by section, then its header. After an
// error it does nothing more; finish returns it.
type imageWriter struct {
	to interface {
		io.Writer
		io.WriterAt
	}
	err     error
	buf     []byte
	at      uint64 // what was written and what is in buf
	open    bool
	section section // that is open
	table   [sections]extent
}

// writeBytes is how much is written at a time.
const writeBytes = 256 << 10

// newImageWriter begins an image at the start of an empty file.
func newImageWriter(to interface {
	io.Writer
	io.WriterAt
}) *imageWriter {
	w := &imageWriter{to: to, buf: make([]byte, 0, writeBytes)}
	w.write(make([]byte, imageStart))
	return w
}

// begin ends the section before and starts another.
func (w *imageWriter) begin(s section) {
	w.end()
	w.write(make([]byte, -w.at&(alignment-1)))
	w.flush()
	w.section, w.open = s, true
	w.table[s] = extent{offset: w.at}
}

func (w *imageWriter) end() {
	if w.open {
		w.flush()
		w.table[w.section].length = w.at - w.table[w.section].offset
		w.open = false
	}
}

func (w *imageWriter) write(b []byte) {
	for len(b) > 0 {
		n := copy(w.buf[len(w.buf):cap(w.buf)], b)
		w.buf, b = w.buf[:len(w.buf)+n], b[n:]
		w.at += uint64(n)
		if len(w.buf) == cap(w.buf) {
			w.flush()
		}
	}
}

func (w *imageWriter) writeString(s string) {
	w.write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

func (w *imageWriter) writeUint32(x uint32) {
	if cap(w.buf)-len(w.buf) < 4 {
		w.write([]byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)})
		return
	}
	w.buf = le.AppendUint32(w.buf, x)
	w.at += 4
	if len(w.buf) == cap(w.buf) {
		w.flush()
	}
}

func (w *imageWriter) flush() {
	if w.open {
		e := &w.table[w.section]
		e.checksum = crc32.Update(e.checksum, castagnoli, w.buf)
	}
	if w.err == nil {
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// finish writes the header with what is in m.
func (w *imageWriter) finish(m image) error {
	w.end()
	w.flush()
	for i := range w.table {
		if w.table[i].offset == 0 { // not written
			w.table[i].offset = uint64(imageStart)
		}
	}
	b := make([]byte, imageHeader, imageStart)
	copy(b, segmentMagic)
	le.PutUint32(b[8:], segmentVersion)
	le.PutUint32(b[12:], uint32(m.dimension))
	le.PutUint64(b[16:], m.name)
	le.PutUint64(b[24:], uint64(m.rows))
	le.PutUint64(b[32:], w.at)
	le.PutUint64(b[40:], m.words)
	if m.lexical {
		le.PutUint32(b[48:], 1)
	}
	le.PutUint32(b[52:], uint32(sections))
	b = append(b, bytesOf(w.table[:])...)
	le.PutUint32(b[56:], headerChecksum(b))
	if w.err == nil {
		_, w.err = w.to.WriteAt(b, 0)
	}
	return w.err
}

func writeSection[T any](w *imageWriter, s section, values []T) {
	w.begin(s)
	w.write(bytesOf(values))
}

// memory is a file in memory.
type memory struct{ bytes []byte }

func (m *memory) Write(b []byte) (int, error) {
	m.bytes = append(m.bytes, b...)
	return len(b), nil
}

func (m *memory) WriteAt(b []byte, at int64) (int, error) { return copy(m.bytes[at:], b), nil }

// aligned returns a copy of b that views of any type can be taken of.
func aligned(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	words := make([]uint64, (len(b)+7)/8)
	to := bytesOf(words)[:len(b)]
	copy(to, b)
	return to
}
