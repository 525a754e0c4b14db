package segment

import (
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unsafe"

	"github.com/racflow/racflow/sdk"
)

// This file has the types that the other files of the store use: an entry in its stored form, sets of rows, and
// changes. It knows neither files nor indexes.

// Row is an entry without its vector; meta is encoded.
type Row struct {
	Sequence                             uint64
	ID, Label, Hash, Context, Text, Meta string
}

// AppendMeta encodes metadata. It returns false for a value of an unsupported type.
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
			b = append(b, bit(v))
		default:
			return nil, false
		}
	}
	return b, true
}

// bit encodes a bool.
func bit(v bool) byte {
	if v {
		return '1'
	}
	return '0'
}

// DecodeMeta is the inverse of AppendMeta. It skips what it cannot read. The result shares no memory with the encoded
// form.
func DecodeMeta(encoded string) sdk.Meta {
	if encoded == "" {
		return nil
	}
	m := sdk.Meta{}
	eachMeta(strings.Clone(encoded), func(key string, value any) { m[key] = value })
	return m
}

// eachMeta calls do with the keys and values of encoded metadata. The strings
// share its memory.
func eachMeta(encoded string, do func(key string, value any)) {
	d := decoder{B: unsafe.Slice(unsafe.StringData(encoded), len(encoded))}
	text := func() string {
		b := d.take(int(d.Uint32()))
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	for range d.Uint32() {
		key := text()
		typ := d.take(1)
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

// decoder takes values off the front of B. Once B is too short for a value, all further values are zero.
type decoder struct {
	B     []byte
	Short bool
}

// take returns the next n bytes.
func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.B) {
		d.B, d.Short = nil, true
		return nil
	}
	v := d.B[:n:n]
	d.B = d.B[n:]
	return v
}

// Uint32 returns the next number.
func (d *decoder) Uint32() uint32 {
	if v := d.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// Uint64 returns the next number.
func (d *decoder) Uint64() uint64 {
	if v := d.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

const (
	// MaxRows bounds the rows of a collection, including deleted ones until a merge removes them.
	MaxRows = 1<<31 - 1<<16
	// MaxDimension bounds the dimension of vectors.
	MaxDimension = 1 << 16
)

// Columns returns the strings of a row, in the order of a put.
func (r *Row) Columns() [6]*string {
	return [6]*string{&r.ID, &r.Label, &r.Hash, &r.Context, &r.Text, &r.Meta}
}

// Size is the number of bytes that a row takes in a log with its vector.
func (r *Row) Size(of *Vectors, i int) int64 {
	n := 8 + of.bytes(i)
	for _, column := range r.Columns() {
		n += 4 + len(*column)
	}
	return int64(n)
}

// Batch is the rows of a put.
type Batch struct {
	Rows    []Row
	Vectors Vectors // normalised
}

// Change is a put or a delete that is staged, logged and applied.
type Change struct {
	Put    *Batch
	Delete []string
}

// normTolerance is how far a squared norm may be from 1 for a vector to be stored unchanged. Embedders return
// normalised vectors, so searches return these unchanged.
const normTolerance = 1e-6

// Normalise appends x with norm 1 to dst, or unchanged if x is zero. It returns false if x contains NaN or an
// infinity.
func Normalise(dst, x []float32) ([]float32, bool) {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	if math.IsNaN(square) || math.IsInf(square, 0) {
		return dst, false
	}
	if square == 0 || math.Abs(square-1) < normTolerance {
		return append(dst, x...), true
	}
	scale := 1 / math.Sqrt(square)
	for _, v := range x {
		dst = append(dst, float32(float64(v)*scale))
	}
	return dst, true
}

// IsZero reports whether a vector is all zero.
func IsZero(x []float32) bool { return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) }

// RowSet is a set of rows; nil is the empty set.
type RowSet []uint64

// NewRowSet returns an empty set with room for the rows below a number.
func NewRowSet(rows int) RowSet { return make(RowSet, (rows+63)/64) }

// AllRows returns the set of all rows below a number.
func AllRows(rows int) RowSet {
	b := NewRowSet(rows)
	for w := range b {
		b[w] = ^uint64(0)
	}
	if rest := rows % 64; rest > 0 {
		b[len(b)-1] = 1<<rest - 1
	}
	return b
}

// Has reports whether a row is in the set.
func (b RowSet) Has(r int32) bool { return b != nil && b[r>>6]>>(r&63)&1 != 0 }

// Add adds a row. The set must have room for it.
func (b RowSet) Add(r int32) { b[r>>6] |= 1 << (r & 63) }

// Count is the number of rows.
func (b RowSet) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Each calls do for each row, in rising order.
func (b RowSet) Each(do func(r int32)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			do(int32(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// Within reports whether all rows of the set are below a number.
func (b RowSet) Within(rows int) bool {
	last := len(b) - 1
	return last < 0 || b[last] == 0 || last*64+bits.Len64(b[last]) <= rows
}
