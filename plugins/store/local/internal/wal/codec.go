package wal

import (
	"encoding/binary"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/sdk"
)

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
func appendPut(b []byte, p *row.Batch) []byte {
	n := len(p.Rows)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Vectors)/max(n, 1)))
	for i := range p.Rows {
		b = binary.LittleEndian.AppendUint64(b, p.Rows[i].Sequence)
	}
	column := make([]string, n)
	for c := range (&row.Row{}).Columns() {
		for i := range p.Rows {
			column[i] = *p.Rows[i].Columns()[c]
		}
		b = appendColumn(b, column)
	}
	return appendNumbers(b, p.Vectors)
}

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
	d := row.Decoder{B: payload}
	s := sdk.Schema{Dimension: int(d.Uint32())}
	s.Analyzer = string(d.B)
	return s, !d.Short && s.Dimension <= row.MaxDimension
}

func decodeCommit(f Frame) (next uint64, note []byte, ok bool) {
	d := row.Decoder{B: f.Payload}
	mark, offset, next := string(d.Take(len(CommitMark))), d.Uint64(), d.Uint64()
	return next, append([]byte(nil), d.B...), !d.Short && mark == CommitMark && offset == uint64(f.Offset)
}

// DecodeChange returns what a frame changes: nothing, if it is neither a put
// nor a delete. The result shares no memory with the payload.
func DecodeChange(f Frame, dimension int) (one row.Change, ok bool) {
	d := row.Decoder{B: f.Payload}
	switch f.Kind {
	case KindPut:
		one.Put, ok = decodePut(&d, dimension)
	case kindDelete:
		one.Delete, ok = decodeColumn(&d, int(d.Uint32())), true
	default:
		return one, true
	}
	return one, ok && !d.Short && len(d.B) == 0
}

func decodePut(d *row.Decoder, dimension int) (*row.Batch, bool) {
	n := int(d.Uint32())
	if int(d.Uint32()) != dimension && n > 0 {
		return nil, false
	}
	sequences := decodeNumbers[uint64](d.Take(8 * n))
	p := &row.Batch{Rows: make([]row.Row, len(sequences))}
	for i, x := range sequences {
		p.Rows[i].Sequence = x
	}
	for c := range (&row.Row{}).Columns() {
		for i, text := range decodeColumn(d, n) {
			*p.Rows[i].Columns()[c] = text
		}
	}
	p.Vectors = decodeNumbers[float32](d.Take(4 * n * dimension))
	return p, true
}

// decodeColumn returns n strings. They share one piece of memory, so that a whole
// column is one allocation.
func decodeColumn(d *row.Decoder, n int) []string {
	lengths := d.Take(4 * n)
	total := 0
	for i := 0; i < len(lengths); i += 4 {
		total += int(binary.LittleEndian.Uint32(lengths[i:]))
	}
	all := string(d.Take(total))
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

// decodeNumbers returns the numbers that bytes are; nil for none.
func decodeNumbers[T uint32 | uint64 | float32](b []byte) []T {
	size := binary.Size(*new(T))
	if len(b) == 0 {
		return nil
	}
	numbers := make([]T, len(b)/size)
	_, _ = binary.Decode(b, binary.LittleEndian, numbers) // fails only for other types and too few bytes
	return numbers
}

// Listed is a segment in a file as a log's base frame lists it.
type Listed struct {
	Name, Size, Rows uint64
	Removed          uint64
	Words            uint64   // of the live rows
	Dead             row.Set  // nil, as gone: nothing was removed
	Gone             []uint32 // by word: removed rows that have it
}

// appendBase encodes a base.
func appendBase(b []byte, all []Listed) []byte {
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

// DecodeBase is the inverse of appendBase. It reports false for what is none.
func DecodeBase(payload []byte) ([]Listed, bool) {
	d := row.Decoder{B: payload}
	var all []Listed
	for range d.Uint32() {
		s := Listed{Name: d.Uint64(), Size: d.Uint64(), Rows: d.Uint64(), Removed: d.Uint64(), Words: d.Uint64()}
		if d.Short || s.Rows > row.MaxRows || s.Removed > s.Rows {
			return nil, false
		}
		if s.Removed > 0 {
			s.Dead = decodeNumbers[uint64](d.Take(8 * len(row.NewSet(int(s.Rows)))))
			s.Gone = decodeNumbers[uint32](d.Take(4 * int(d.Uint32())))
		}
		if d.Short {
			return nil, false
		}
		all = append(all, s)
	}
	return all, len(d.B) == 0
}
