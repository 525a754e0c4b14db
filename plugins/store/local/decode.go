package local

import (
	"math"
	"strings"
	"unsafe"

	"github.com/racflow/racflow/sdk"
)

func decodeSchema(payload []byte) (sdk.Schema, bool) {
	d := decoder{b: payload}
	s := sdk.Schema{Dimension: int(d.uint32())}
	s.Analyzer = string(d.b)
	return s, !d.short && s.Dimension <= maxDimension
}

func decodeCommit(f frame) (next uint64, note []byte, ok bool) {
	d := decoder{b: f.payload}
	mark, offset, next := string(d.take(len(commitMark))), d.uint64(), d.uint64()
	return next, append([]byte(nil), d.b...), !d.short && mark == commitMark && offset == uint64(f.offset)
}

// decodeChange returns what a frame changes: nothing, if it is neither a put
// nor a delete. The result shares no memory with the payload.
func decodeChange(k kind, payload []byte, dimension int) (change, bool) {
	d := decoder{b: payload}
	switch k {
	case kindPut:
		p := d.put(dimension)
		return change{put: p}, !d.short && len(d.b) == 0
	case kindDelete:
		ids := d.column(int(d.uint32()))
		return change{delete: ids}, !d.short && len(d.b) == 0
	}
	return change{}, true
}

// decoder takes values off the front of b. After a value that b was too short
// for it returns zero values only.
type decoder struct {
	b     []byte
	short bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.b, d.short = nil, true
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	if v := d.take(4); v != nil {
		return le.Uint32(v)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if v := d.take(8); v != nil {
		return le.Uint64(v)
	}
	return 0
}

// column returns n strings. They share one piece of memory, so that a whole
// column is one allocation.
func (d *decoder) column(n int) []string {
	lengths := d.take(4 * n)
	total := 0
	for i := 0; i < len(lengths); i += 4 {
		total += int(le.Uint32(lengths[i:]))
	}
	all := string(d.take(total))
	if d.short {
		return nil
	}
	values := make([]string, n)
	for i := range values {
		size := int(le.Uint32(lengths[4*i:]))
		values[i], all = all[:size], all[size:]
	}
	return values
}

func (d *decoder) put(dimension int) *batch {
	n := int(d.uint32())
	if int(d.uint32()) != dimension && n > 0 {
		d.short = true
		return nil
	}
	p := &batch{}
	numbers := d.take(8 * n)
	p.rows = make([]row, len(numbers)/8)
	for i := range p.rows {
		p.rows[i].sequence = le.Uint64(numbers[8*i:])
	}
	for c := range (&row{}).columns() {
		for i, text := range d.column(n) {
			*p.rows[i].columns()[c] = text
		}
	}
	floats := d.take(4 * n * dimension)
	p.vectors = make([]float32, len(floats)/4)
	for i := range p.vectors {
		p.vectors[i] = math.Float32frombits(le.Uint32(floats[4*i:]))
	}
	return p
}

// decodeMeta is the inverse of appendMeta; what it cannot read it leaves out. The
// result shares no memory with the encoded form.
func decodeMeta(encoded string) sdk.Meta {
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
	if encoded == "" {
		return
	}
	d := decoder{b: unsafe.Slice(unsafe.StringData(encoded), len(encoded))}
	text := func() string {
		b := d.take(int(d.uint32()))
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	for range d.uint32() {
		key := text()
		typ := d.take(1)
		if d.short {
			return
		}
		var value any
		switch typ[0] {
		case 's':
			value = text()
		case 'f':
			value = math.Float64frombits(d.uint64())
		default:
			value = typ[0] == '1'
		}
		if d.short {
			return
		}
		do(key, value)
	}
}
