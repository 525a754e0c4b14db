package local

import (
	"math"
	"slices"

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

// valueBytes is as much of a string as the index has. Where it has that much,
// more may follow, and only the row itself tells what.
const valueBytes = 64

// appendField appends what the keys of a field start with.
func appendField(b []byte, field sdk.Field, key string) []byte {
	if field == sdk.FieldLabel {
		return append(b, 'l')
	}
	n := uint32(len(key))
	return append(append(b, 'm', byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), key...)
}

// appendValue appends a type and a value. It reports false for NaN, which equals
// nothing and is above nothing.
func appendValue(b []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case bool:
		if v {
			return append(b, 'b', '1'), true
		}
		return append(b, 'b', '0'), true
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
		b = append(b, 'f')
		for shift := 56; shift >= 0; shift -= 8 {
			b = append(b, byte(bits>>shift))
		}
		return b, !math.IsNaN(v)
	case string:
		return append(append(b, 's'), v[:min(len(v), valueBytes)]...), true
	}
	return b, false
}

// eachValue calls do with the keys of a row, in b's memory where that suffices.
func eachValue(b []byte, label, meta string, do func(key []byte)) {
	b = append(appendField(b[:0], sdk.FieldLabel, ""), 's')
	b = append(b, label[:min(len(label), valueBytes)]...)
	do(b)
	eachMeta(meta, func(key string, value any) {
		b = appendField(b[:0], sdk.FieldMeta, key)
		var ok bool
		if b, ok = appendValue(b, value); ok {
			do(slices.Clip(b))
		}
	})
}
