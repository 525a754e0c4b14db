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

// This file is what every other room of the store works on: an entry as the bytes of
// the files have it, sets of rows, and changes. It knows neither files nor indexes.

// Row is an entry without its vector; meta is encoded.
type Row struct {
	Sequence                             uint64
	ID, Label, Hash, Context, Text, Meta string
}

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
			b = append(b, bit(v))
		default:
			return nil, false
		}
	}
	return b, true
}

// bit is how a bool is written.
func bit(v bool) byte {
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

// decoder takes values off the front of b. After a value that b was too short
// for it returns zero values only.
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
	// MaxRows bounds the rows of a collection, deleted ones counted until they are
	// merged away.
	MaxRows = 1<<31 - 1<<16
	// MaxDimension bounds the dimension of vectors.
	MaxDimension = 1 << 16
)

// Columns are the strings of a row, in the order in which a put has them.
func (r *Row) Columns() [6]*string {
	return [6]*string{&r.ID, &r.Label, &r.Hash, &r.Context, &r.Text, &r.Meta}
}

// Size is what a row takes in a log with its vector, in bytes.
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

// Change is a put or a delete, as it is staged, logged and applied.
type Change struct {
	Put    *Batch
	Delete []string
}

// normTolerance is how far a squared norm may be from 1 for a vector to be kept
// as it was given: embedders hand in normalised ones, which come back unchanged.
const normTolerance = 1e-6

// Normalise appends x with norm 1 to dst, or as it is if all of x is 0. It
// reports false if x holds NaN or an infinity.
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

// IsZero reports whether a vector has no direction.
func IsZero(x []float32) bool { return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) }

// RowSet is a set of rows; nil is the empty one.
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

// Add adds a row that there is room for.
func (b RowSet) Add(r int32) { b[r>>6] |= 1 << (r & 63) }

// Count is the number of rows.
func (b RowSet) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Each calls do for each row, rising.
func (b RowSet) Each(do func(r int32)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			do(int32(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// Within reports whether all of a set is below a number of rows.
func (b RowSet) Within(rows int) bool {
	last := len(b) - 1
	return last < 0 || b[last] == 0 || last*64+bits.Len64(b[last]) <= rows
}
