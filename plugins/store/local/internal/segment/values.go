package segment

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/sdk"
)

// The label and the metadata of a row are keys of an index, such that keys of
// one field and type stand together and in the order of their values:
//
//	'l'                          the label
//	'm', length of the key, key  metadata; the length is a big-endian u32
//
// is a field, behind it comes 'b', 'f' or 's' for the type, then the value: '0'
// or '1'; a float64 as a big-endian u64 whose sign bit is turned over, all bits
// if it is negative; the first valueBytes bytes of a string.

// ValueBytes is as much of a string as the index has. Where it has that much,
// more may follow, and only the row itself tells what.
const ValueBytes = 64

// AppendField appends what the keys of a field start with.
func AppendField(b []byte, field sdk.Field, key string) []byte {
	if field == sdk.FieldLabel {
		return append(b, 'l')
	}
	return append(binary.BigEndian.AppendUint32(append(b, 'm'), uint32(len(key))), key...)
}

// AppendValue appends a type and a value. It reports false for NaN, which equals
// nothing and is above nothing.
func AppendValue(b []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case bool:
		return append(b, 'b', row.Bit(v)), true
	case float64:
		bits := math.Float64bits(v)
		if v == 0 {
			bits = 0 // -0 equals it
		}
		if bits>>63 != 0 {
			bits = ^bits
		} else {
			bits |= 1 << 63
		}
		return binary.BigEndian.AppendUint64(append(b, 'f'), bits), !math.IsNaN(v)
	case string:
		return append(append(b, 's'), v[:min(len(v), ValueBytes)]...), true
	}
	return b, false
}

// EachValue calls do with the keys of a row, in b's memory where that suffices.
func EachValue(b []byte, label, meta string, do func(key []byte)) {
	b = append(AppendField(b[:0], sdk.FieldLabel, ""), 's')
	b = append(b, label[:min(len(label), ValueBytes)]...)
	do(b)
	row.EachMeta(meta, func(key string, value any) {
		b = AppendField(b[:0], sdk.FieldMeta, key)
		var ok bool
		if b, ok = AppendValue(b, value); ok {
			do(slices.Clip(b))
		}
	})
}
