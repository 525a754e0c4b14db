package segment

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/racflow/racflow/sdk"
)

// The layout of a log; see format.md.
const (
	LogMagic    = "racstore"
	LogVersion  = 2
	LogHeader   = len(LogMagic) + 4 + 16
	FrameHeader = 4 + 1 + 4
	maxPayload  = 1 << 30
	CommitMark  = "\xffcommit\n"
)

// FrameKind is the kind of a frame's payload.
type FrameKind byte

// The kinds of frames.
const (
	kindSchema FrameKind = iota + 1
	FramePut
	kindDelete
	kindCommit
	FrameBase
)

// ErrTorn says that there is no complete frame at an offset.
var ErrTorn = errors.New("torn frame")

// LogState describes the last commit of a log. The zero value describes a log that does not exist or has no commit.
type LogState struct {
	ID     [16]byte
	Schema sdk.Schema
	Base   int64    // where the frames after the base begin
	Listed []string // paths of the files listed in the base
	End    int64    // of the last commit frame
	Next   uint64   // sequence number
	Note   []byte
}

// Same reports whether s and t are the same commit of the same log.
func (s LogState) Same(t LogState) bool { return s.End == t.End && (s.End == 0 || s.ID == t.ID) }

// logHeader returns the start of a new log.
func logHeader(id [16]byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(LogMagic), LogVersion)
	return append(b, id[:]...)
}

// ReadLogHeader returns the identity of a log.
func ReadLogHeader(f *os.File) (id [16]byte, err error) {
	b := make([]byte, LogHeader)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return id, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if string(b[:len(LogMagic)]) != LogMagic {
		return id, fmt.Errorf("%s is not a racflow store: move it away, or give the store another path", f.Name())
	}
	switch v := binary.LittleEndian.Uint32(b[len(LogMagic):]); {
	case v < LogVersion:
		return id, fmt.Errorf("%s has version %d, from before the first release of racflow: delete its folder and build the knowledge again", f.Name(), v)
	case v > LogVersion:
		return id, fmt.Errorf("%s has version %d and this racflow reads version %d: use a newer racflow, or another state folder", f.Name(), v, LogVersion)
	}
	return [16]byte(b[LogHeader-16:]), nil
}

// Frame is one record of a log.
type Frame struct {
	Kind    FrameKind
	Offset  int64
	Payload []byte // valid until the next frame is read
}

// FrameReader reads the frames in a part of a log.
type FrameReader struct {
	r           *bufio.Reader
	Offset, end int64
	buf         []byte
}

// NewFrameReader reads the frames between two offsets.
func NewFrameReader(f io.ReaderAt, from, to int64) *FrameReader {
	part := io.NewSectionReader(f, from, to-from)
	return &FrameReader{r: bufio.NewReaderSize(part, int(min(part.Size(), 1<<20))), Offset: from, end: to}
}

// Next returns the next frame, io.EOF after the last one, or ErrTorn.
func (r *FrameReader) Next() (Frame, error) {
	if r.Offset == r.end {
		return Frame{}, io.EOF
	}
	var head [FrameHeader]byte
	if r.end-r.Offset < FrameHeader {
		return Frame{}, ErrTorn
	}
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Frame{}, shortRead(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if size > min(maxPayload, r.end-r.Offset-FrameHeader) {
		return Frame{}, ErrTorn
	}
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	payload := r.buf[:size]
	if _, err := io.ReadFull(r.r, payload); err != nil {
		return Frame{}, shortRead(err)
	}
	if binary.LittleEndian.Uint32(head[5:]) != FrameChecksum(head[:5], payload) {
		return Frame{}, ErrTorn
	}
	f := Frame{Kind: FrameKind(head[4]), Offset: r.Offset, Payload: payload}
	r.Offset += FrameHeader + size
	return f, nil
}

// FrameChecksum is the checksum of a frame: of its length, its kind and its payload.
func FrameChecksum(head, payload []byte) uint32 {
	return Checksum(Checksum(0, head), payload)
}

// shortRead converts the error of a file that ends early to ErrTorn: its writer truncated it during the read.
func shortRead(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return err
}

// InspectLog finds the last commit of a log and checks every frame before it. It starts after the known commit, if
// the log is still the same.
func InspectLog(f *os.File, known LogState) (LogState, error) {
	id, err := ReadLogHeader(f)
	if err != nil {
		return LogState{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return LogState{}, err
	}
	s := LogState{ID: id}
	from := int64(LogHeader)
	if known.End > 0 && known.ID == id && known.End <= info.Size() {
		s, from = known, known.End
	}
	frames := NewFrameReader(f, from, info.Size())
	// A log with a base was complete, including a commit, before it got its name.
	schema, base, based := s.Schema, s.Base, false
	for {
		fr, err := frames.Next()
		switch {
		case err == io.EOF && (s.End > 0 || !based):
			return s, nil
		case err == io.EOF:
			return LogState{}, Damage(f.Name(), frames.Offset, "its commit is missing")
		case err == ErrTorn:
			later, err := commitBehind(f, frames.Offset, info.Size())
			if err != nil || !later && !(s.End == 0 && (based || startsBase(f, frames.Offset))) {
				return s, err
			}
			return LogState{}, Damage(f.Name(), frames.Offset, "checksum")
		case err != nil:
			return LogState{}, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		ok := true
		switch {
		case (fr.Kind == kindSchema) != (fr.Offset == int64(LogHeader)):
			ok = false
		case fr.Kind == kindSchema:
			schema, ok = decodeSchema(fr.Payload)
			base = frames.Offset
		case fr.Kind == FrameBase:
			ok = fr.Offset == base && s.End == 0
			base, based = frames.Offset, true
		case fr.Kind == kindCommit:
			var next uint64
			var note []byte
			if next, note, ok = decodeCommit(fr); ok {
				s = LogState{ID: id, Schema: schema, Base: base, End: frames.Offset, Next: next, Note: note}
			}
		case fr.Kind > FrameBase:
			ok = false
		}
		if !ok {
			return LogState{}, Damage(f.Name(), fr.Offset, "unexpected content")
		}
	}
}

// startsBase reports whether an incomplete frame is a base.
func startsBase(f io.ReaderAt, offset int64) bool {
	var head [5]byte
	_, err := f.ReadAt(head[:], offset)
	return err == nil && FrameKind(head[4]) == FrameBase
}

// commitBehind reports whether there is a complete commit frame anywhere between two offsets.
func commitBehind(f io.ReaderAt, from, to int64) (bool, error) {
	const overlap = len(CommitMark) - 1
	chunk := make([]byte, min(to-from, 1<<20)+int64(overlap))
	for at := from; at < to; at += int64(len(chunk) - overlap) {
		n, err := f.ReadAt(chunk[:min(int64(len(chunk)), to-at)], at)
		if err != nil && err != io.EOF {
			return false, err
		}
		for i := 0; ; i++ {
			j := bytes.Index(chunk[i:n], []byte(CommitMark))
			if j < 0 {
				break
			}
			i += j
			start := at + int64(i) - FrameHeader
			if start < from {
				continue
			}
			fr, err := NewFrameReader(f, start, to).Next()
			if err == nil && fr.Kind == kindCommit {
				if _, _, ok := decodeCommit(fr); ok {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
