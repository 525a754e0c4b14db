package wal

import (
	"encoding/binary"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
)

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
