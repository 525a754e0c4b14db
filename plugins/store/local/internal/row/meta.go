package row

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/racflow/racflow/sdk"
)

// AppendMeta encodes metadata. It reports false for a value of a type that
// metadata cannot have.
func AppendMeta(b []byte, m sdk.Meta) ([]byte, bool) {
	if len(m) == 0 {
		return b, true
	}
	text := func(s string) { b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...) }
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text(k)
		switch v := m[k].(type) {
		case string:
			b = append(b, 's')
			text(v)
		case float64:
			b = binary.LittleEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case bool:
			b = append(b, Bit(v))
		default:
			return nil, false
		}
	}
	return b, true
}

// Bit is how a bool is written.
func Bit(v bool) byte {
	if v {
		return '1'
	}
	return '0'
}

// DecodeMeta is the inverse of appendMeta; what it cannot read it leaves out. The
// result shares no memory with the encoded form.
func DecodeMeta(encoded string) sdk.Meta {
	if encoded == "" {
		return nil
	}
	m := sdk.Meta{}
	EachMeta(strings.Clone(encoded), func(key string, value any) { m[key] = value })
	return m
}

// EachMeta calls do with the keys and values of encoded metadata. The strings
// share its memory.
func EachMeta(encoded string, do func(key string, value any)) {
	d := Decoder{B: unsafe.Slice(unsafe.StringData(encoded), len(encoded))}
	text := func() string {
		b := d.Take(int(d.Uint32()))
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	for range d.Uint32() {
		key := text()
		typ := d.Take(1)
		if d.Short {
			return
		}
		var value any
		switch typ[0] {
		case 's':
			value = text()
		case 'f':
			value = math.Float64frombits(d.Uint64())
		default:
			value = typ[0] == '1'
		}
		if d.Short {
			return
		}
		do(key, value)
	}
}

// Decoder takes values off the front of b. After a value that b was too short
// for it returns zero values only.
type Decoder struct {
	B     []byte
	Short bool
}

// Take returns the next n bytes.
func (d *Decoder) Take(n int) []byte {
	if n < 0 || n > len(d.B) {
		d.B, d.Short = nil, true
		return nil
	}
	v := d.B[:n:n]
	d.B = d.B[n:]
	return v
}

// Uint32 returns the next number.
func (d *Decoder) Uint32() uint32 {
	if v := d.Take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// Uint64 returns the next number.
func (d *Decoder) Uint64() uint64 {
	if v := d.Take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}
