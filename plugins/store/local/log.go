package local

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/racflow/racflow/sdk"
)

// The layout of a log; see format.md.
const (
	magic       = "racstore"
	version     = 2
	headerSize  = len(magic) + 4 + 16
	frameHeader = 4 + 1 + 4
	maxPayload  = 1 << 30

	maxDimension = 1 << 16
	commitMark   = "\xffcommit\n"
)

type kind byte

const (
	kindSchema kind = iota + 1
	kindPut
	kindDelete
	kindCommit
	kindBase
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn says that no whole frame stands at an offset.
var errTorn = errors.New("torn frame")

// damaged is the error for bytes that a commit vouches for and that changed since.
type damaged struct {
	path   string
	offset int64
	what   string
}

func (d *damaged) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (%s): restore it from a copy, or delete its folder and build the knowledge again",
		d.path, d.offset, d.what)
}

// state is what a log's committed part amounts to. The zero value is a log that
// does not exist or that no commit was written to.
type state struct {
	id     [16]byte
	schema sdk.Schema
	base   int64    // where the frames behind the base begin
	listed []string // paths of the files in the base
	end    int64    // of the last commit frame
	next   uint64   // sequence number
	note   []byte
}

// same reports whether s and t are the same commit of the same log.
func (s state) same(t state) bool { return s.end == t.end && (s.end == 0 || s.id == t.id) }

// header returns the start of a new log.
func header(id [16]byte) []byte {
	b := le.AppendUint32([]byte(magic), version)
	return append(b, id[:]...)
}

// readHeader returns the identity of a log.
func readHeader(f *os.File) (id [16]byte, err error) {
	b := make([]byte, headerSize)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return id, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if string(b[:len(magic)]) != magic {
		return id, fmt.Errorf("%s is not a racflow store: move it away, or give the store another path", f.Name())
	}
	switch v := le.Uint32(b[len(magic):]); {
	case v < version:
		return id, fmt.Errorf("%s has version %d, from before the first release of racflow: delete its folder and build the knowledge again", f.Name(), v)
	case v > version:
		return id, fmt.Errorf("%s has version %d and this racflow reads version %d: use a newer racflow, or another state folder", f.Name(), v, version)
	}
	return [16]byte(b[headerSize-16:]), nil
}

// frame is one record of a log.
type frame struct {
	kind    kind
	offset  int64
	payload []byte // valid until the next frame is read
}

// frameReader walks through the frames of a part of a log.
type frameReader struct {
	r           *bufio.Reader
	offset, end int64
	buf         []byte
}

func newFrameReader(f io.ReaderAt, from, to int64) *frameReader {
	part := io.NewSectionReader(f, from, to-from)
	return &frameReader{r: bufio.NewReaderSize(part, int(min(part.Size(), 1<<20))), offset: from, end: to}
}

// next returns the next frame, io.EOF behind the last one, or errTorn.
func (r *frameReader) next() (frame, error) {
	if r.offset == r.end {
		return frame{}, io.EOF
	}
	var head [frameHeader]byte
	if r.end-r.offset < frameHeader {
		return frame{}, errTorn
	}
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return frame{}, shortRead(err)
	}
	size := int64(le.Uint32(head[:]))
	if size > min(maxPayload, r.end-r.offset-frameHeader) {
		return frame{}, errTorn
	}
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	payload := r.buf[:size]
	if _, err := io.ReadFull(r.r, payload); err != nil {
		return frame{}, shortRead(err)
	}
	if le.Uint32(head[5:]) != checksum(head[:5], payload) {
		return frame{}, errTorn
	}
	f := frame{kind: kind(head[4]), offset: r.offset, payload: payload}
	r.offset += frameHeader + size
	return f, nil
}

// shortRead takes a file that ends early for a torn one: its writer cut it off
// while it was read.
func shortRead(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}

func checksum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
}

// inspect finds the last commit of a log and checks every frame before it. It
// starts behind the commit that is already known, if this is still that log.
func inspect(f *os.File, known state) (state, error) {
	id, err := readHeader(f)
	if err != nil {
		return state{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return state{}, err
	}
	s := state{id: id}
	from := int64(headerSize)
	if known.end > 0 && known.id == id && known.end <= info.Size() {
		s, from = known, known.end
	}
	frames := newFrameReader(f, from, info.Size())
	// A log with a base was whole, commit and all, before it got its name.
	schema, base, based := s.schema, s.base, false
	for {
		fr, err := frames.next()
		switch {
		case err == io.EOF && (s.end > 0 || !based):
			return s, nil
		case err == io.EOF:
			return state{}, &damaged{f.Name(), frames.offset, "its commit is missing"}
		case err == errTorn:
			later, err := commitBehind(f, frames.offset, info.Size())
			if err != nil || !later && !(s.end == 0 && (based || startsBase(f, frames.offset))) {
				return s, err
			}
			return state{}, &damaged{f.Name(), frames.offset, "checksum"}
		case err != nil:
			return state{}, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		ok := true
		switch {
		case (fr.kind == kindSchema) != (fr.offset == int64(headerSize)):
			ok = false
		case fr.kind == kindSchema:
			schema, ok = decodeSchema(fr.payload)
			base = frames.offset
		case fr.kind == kindBase:
			ok = fr.offset == base && s.end == 0
			base, based = frames.offset, true
		case fr.kind == kindCommit:
			var next uint64
			var note []byte
			if next, note, ok = decodeCommit(fr); ok {
				s = state{id: id, schema: schema, base: base, end: frames.offset, next: next, note: note}
			}
		case fr.kind > kindBase:
			ok = false
		}
		if !ok {
			return state{}, &damaged{f.Name(), fr.offset, "unexpected content"}
		}
	}
}

// startsBase reports whether what is left of a frame is of a base.
func startsBase(f io.ReaderAt, offset int64) bool {
	var head [5]byte
	_, err := f.ReadAt(head[:], offset)
	return err == nil && kind(head[4]) == kindBase
}

// commitBehind reports whether a whole commit frame stands anywhere between two
// offsets.
func commitBehind(f io.ReaderAt, from, to int64) (bool, error) {
	const overlap = len(commitMark) - 1
	chunk := make([]byte, min(to-from, 1<<20)+int64(overlap))
	for at := from; at < to; at += int64(len(chunk) - overlap) {
		n, err := f.ReadAt(chunk[:min(int64(len(chunk)), to-at)], at)
		if err != nil && err != io.EOF {
			return false, err
		}
		for i := 0; ; i++ {
			j := bytes.Index(chunk[i:n], []byte(commitMark))
			if j < 0 {
				break
			}
			i += j
			start := at + int64(i) - frameHeader
			if start < from {
				continue
			}
			fr, err := newFrameReader(f, start, to).next()
			if err == nil && fr.kind == kindCommit {
				if _, _, ok := decodeCommit(fr); ok {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
