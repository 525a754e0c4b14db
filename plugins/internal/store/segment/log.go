package segment

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file reads and writes the log of a collection: frames of puts, deletes and commits, and the base that lists
// the files of segments. It finds the last commit, and distinguishes leftovers of a killed writer from damage. It
// does not interpret the changes.

// Appender appends frames to a log.
type Appender struct {
	F    *support.File
	ID   [16]byte
	Sync bool
	End  int64
	buf  []byte
}

// CreateLog starts a new log under a temporary name, beside the log that it will replace.
func CreateLog(path string, schema sdk.Schema, sync bool) (*Appender, error) {
	f, err := support.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	a := &Appender{F: f, Sync: sync, End: int64(LogHeader)}
	_, _ = rand.Read(a.ID[:]) // documented never to fail
	if _, err = f.WriteAt(logHeader(a.ID), 0); err == nil {
		_, err = a.append(kindSchema, func(b []byte) []byte { return appendSchema(b, schema) })
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

// ErrUnsure says that a log replaced another one, but that a power failure may undo this. The files that either log
// lists must stay.
var ErrUnsure = errors.New("it is not certain that the new log is on the disk")

// Rename replaces another log, durably.
func (a *Appender) Rename(path string) error {
	if err := a.flush(); err != nil {
		return err
	}
	if err := support.Rename(a.F.Name(), path); err != nil || !a.Sync {
		return err
	}
	if err := support.SyncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return nil
}

// Change appends a change.
func (a *Appender) Change(one Change) error {
	_, err := a.change(one)
	return err
}

// ChangeAndRead appends a change and returns it as a reader of the log would see it.
func (a *Appender) ChangeAndRead(one Change, dimension int) (Change, error) {
	f, err := a.change(one)
	if err != nil {
		return one, err
	}
	read, ok := DecodeChange(f, dimension)
	if !ok {
		return one, errors.New("a record cannot be read back")
	}
	return read, nil
}

func (a *Appender) change(one Change) (Frame, error) {
	if one.Put != nil {
		return a.append(FramePut, func(b []byte) []byte { return appendPut(b, one.Put) })
	}
	return a.append(kindDelete, func(b []byte) []byte { return appendDelete(b, one.Delete) })
}

// Base appends a base, which must be the first frame.
func (a *Appender) Base(files []ListedCommit) error {
	_, err := a.append(FrameBase, func(b []byte) []byte { return appendBase(b, files) })
	return err
}

// append writes a frame. The returned frame is valid until the next call.
func (a *Appender) append(k FrameKind, payload func([]byte) []byte) (Frame, error) {
	b := payload(append(a.buf[:0], make([]byte, FrameHeader)...))
	if len(b) > FrameHeader+maxPayload {
		return Frame{}, errors.New("a record is larger than 1 GiB")
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-FrameHeader))
	b[4] = byte(k)
	binary.LittleEndian.PutUint32(b[5:], FrameChecksum(b[:5], b[FrameHeader:]))
	a.buf = b
	if _, err := a.F.WriteAt(b, a.End); err != nil {
		return Frame{}, err
	}
	f := Frame{Kind: k, Offset: a.End, Payload: b[FrameHeader:]}
	a.End += int64(len(b))
	return f, nil
}

// Commit commits everything written so far. It syncs before the commit frame, so that a reader can distinguish a torn
// tail from damage; see format.md.
func (a *Appender) Commit(next uint64, note []byte) error {
	if err := a.flush(); err != nil {
		return err
	}
	at := a.End
	if _, err := a.append(kindCommit, func(b []byte) []byte { return appendCommit(b, at, next, note) }); err != nil {
		return err
	}
	return a.flush()
}

func (a *Appender) flush() error {
	if !a.Sync {
		return nil
	}
	return a.F.Sync()
}

func appendSchema(b []byte, s sdk.Schema) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(s.Dimension)), s.Analyzer...)
}

func appendCommit(b []byte, offset int64, next uint64, note []byte) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, CommitMark...), uint64(offset))
	return append(binary.LittleEndian.AppendUint64(b, next), note...)
}

// appendDelete encodes the payload of a delete.
func appendDelete(b []byte, ids []string) []byte {
	return appendColumn(binary.LittleEndian.AppendUint32(b, uint32(len(ids))), ids)
}

// appendPut encodes the payload of a put.
func appendPut(b []byte, p *Batch) []byte {
	n := len(p.Rows)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	dimension := uint32(p.Vectors.Dimension)
	if p.Vectors.sparse() {
		dimension |= sparseFrame
	}
	b = binary.LittleEndian.AppendUint32(b, dimension)
	for i := range p.Rows {
		b = binary.LittleEndian.AppendUint64(b, p.Rows[i].Sequence)
	}
	column := make([]string, n)
	for c := range (&Row{}).Columns() {
		for i := range p.Rows {
			column[i] = *p.Rows[i].Columns()[c]
		}
		b = appendColumn(b, column)
	}
	b = appendNumbers(b, p.Vectors.Ends)
	b = append(b, bytesOf(p.Vectors.Numbers)...)
	return appendNumbers(b, p.Vectors.Dense)
}

// sparseFrame is added to the dimension in puts of sparse vectors.
const sparseFrame = 1 << 31

func appendColumn(b []byte, values []string) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
	}
	for _, v := range values {
		b = append(b, v...)
	}
	return b
}

func appendNumbers[T uint32 | uint64 | float32](b []byte, numbers []T) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, numbers) // fails only for other types
	return b
}

func decodeSchema(payload []byte) (sdk.Schema, bool) {
	d := decoder{B: payload}
	s := sdk.Schema{Dimension: int(d.Uint32())}
	s.Analyzer = string(d.B)
	return s, !d.Short && s.Dimension <= MaxDimension
}

func decodeCommit(f Frame) (next uint64, note []byte, ok bool) {
	d := decoder{B: f.Payload}
	mark, offset, next := string(d.take(len(CommitMark))), d.Uint64(), d.Uint64()
	return next, append([]byte(nil), d.B...), !d.Short && mark == CommitMark && offset == uint64(f.Offset)
}

// DecodeChange returns the change in a frame: none, if the frame is neither a put nor a delete. The result shares no
// memory with the payload.
func DecodeChange(f Frame, dimension int) (one Change, ok bool) {
	d := decoder{B: f.Payload}
	switch f.Kind {
	case FramePut:
		one.Put, ok = decodePut(&d, dimension)
	case kindDelete:
		one.Delete, ok = decodeColumn(&d, int(d.Uint32())), true
	default:
		return one, true
	}
	return one, ok && !d.Short && len(d.B) == 0
}

func decodePut(d *decoder, dimension int) (*Batch, bool) {
	n := int(d.Uint32())
	wide := d.Uint32()
	if int(wide&^sparseFrame) != dimension && n > 0 {
		return nil, false
	}
	sequences := decodeNumbers[uint64](d.take(8 * n))
	p := &Batch{Rows: make([]Row, len(sequences))}
	for i, x := range sequences {
		p.Rows[i].Sequence = x
	}
	for c := range (&Row{}).Columns() {
		for i, text := range decodeColumn(d, n) {
			*p.Rows[i].Columns()[c] = text
		}
	}
	p.Vectors.Dimension = dimension
	if wide&sparseFrame == 0 {
		p.Vectors.Dense = decodeNumbers[float32](d.take(4 * n * dimension))
		return p, true
	}
	p.Vectors.Ends = decodeNumbers[uint64](d.take(8 * n))
	if d.Short || n == 0 {
		return nil, false
	}
	p.Vectors.Numbers = make([]simd.Term, min(p.Vectors.Ends[n-1], uint64(len(d.B)/8)))
	copy(bytesOf(p.Vectors.Numbers), d.take(8*len(p.Vectors.Numbers)))
	return p, true
}

// decodeColumn returns n strings. They share one piece of memory, so that a column is one allocation.
func decodeColumn(d *decoder, n int) []string {
	lengths := d.take(4 * n)
	total := 0
	for i := 0; i < len(lengths); i += 4 {
		total += int(binary.LittleEndian.Uint32(lengths[i:]))
	}
	all := string(d.take(total))
	if d.Short {
		return nil
	}
	values := make([]string, n)
	for i := range values {
		size := int(binary.LittleEndian.Uint32(lengths[4*i:]))
		values[i], all = all[:size], all[size:]
	}
	return values
}

// decodeNumbers decodes numbers from bytes; nil for none.
func decodeNumbers[T uint32 | uint64 | float32](b []byte) []T {
	size := binary.Size(*new(T))
	if len(b) == 0 {
		return nil
	}
	numbers := make([]T, len(b)/size)
	_, _ = binary.Decode(b, binary.LittleEndian, numbers) // fails only for other types and too few bytes
	return numbers
}

// ListedCommit is a segment file, as listed in a log's base frame.
type ListedCommit struct {
	Name, Size, Rows uint64
	Removed          uint64
	Words            uint64   // of the live rows
	Dead             RowSet   // nil, like Gone: nothing was removed
	Gone             []uint32 // by word: removed rows that have it
}

// appendBase encodes a base.
func appendBase(b []byte, all []ListedCommit) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(all)))
	for _, s := range all {
		b = appendNumbers(b, []uint64{s.Name, s.Size, s.Rows, s.Removed, s.Words})
		if s.Removed > 0 {
			b = appendNumbers(b, []uint64(s.Dead))
			b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Gone)))
			b = appendNumbers(b, s.Gone)
		}
	}
	return b
}

// DecodeBase is the inverse of appendBase. It returns false for invalid payloads.
func DecodeBase(payload []byte) ([]ListedCommit, bool) {
	d := decoder{B: payload}
	var all []ListedCommit
	for range d.Uint32() {
		s := ListedCommit{Name: d.Uint64(), Size: d.Uint64(), Rows: d.Uint64(), Removed: d.Uint64(), Words: d.Uint64()}
		if d.Short || s.Rows > MaxRows || s.Removed > s.Rows {
			return nil, false
		}
		if s.Removed > 0 {
			s.Dead = decodeNumbers[uint64](d.take(8 * len(NewRowSet(int(s.Rows)))))
			s.Gone = decodeNumbers[uint32](d.take(4 * int(d.Uint32())))
		}
		if d.Short {
			return nil, false
		}
		all = append(all, s)
	}
	return all, len(d.B) == 0
}
