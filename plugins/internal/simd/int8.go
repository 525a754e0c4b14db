package simd

import (
	"math"
	"unsafe"
)

// DotInt8 sets dst[i] to the dot product of a query and row i of rows, which
// stand one after another, each as long as the query. Values must be from -127
// to 127 and the query at most 2^17 long; then the results are exact, so that
// all kernels agree. It is fastest where the length is a multiple of 64. Wrong
// shapes panic.
func (k *Kernel) DotInt8(dst []int32, query, rows []int8) {
	length := len(query)
	if len(rows) != len(dst)*length {
		panic("simd: shapes of a product do not fit")
	}
	n, whole := length&^(k.bytes-1), len(dst)&^(int8Rows-1)
	clear(dst)
	if n > 0 && whole > 0 {
		k.dotInt8(dst[:whole], query[:n], rows, length)
	} else {
		n = 0
	}
	if n < length {
		dotInt8Portable(dst[:whole], query[n:], rows[n:], length)
	}
	dotInt8Portable(dst[whole:], query, rows[whole*length:], length)
}

// int8Rows is the number of rows that dotInt8 works on at a time.
const int8Rows = 4

// dotInt8Portable adds the products of a query with rows that are stride apart.
func dotInt8Portable(dst []int32, query, rows []int8, stride int) {
	for i := range dst {
		q, r := query, rows[i*stride:][:len(query)]
		var s0, s1 int32
		for len(q) >= 4 && len(r) >= 4 {
			s0 += int32(q[0])*int32(r[0]) + int32(q[1])*int32(r[1])
			s1 += int32(q[2])*int32(r[2]) + int32(q[3])*int32(r[3])
			q, r = q[4:], r[4:]
		}
		for p, x := range q {
			s0 += int32(x) * int32(r[p])
		}
		dst[i] += s0 + s1
	}
}

// Quantisation is the scale of a vector's int8 codes: the vector is Scale times the
// codes, plus a rest of length Lost.
type Quantisation struct{ Scale, Lost float32 }

// Bound says how large the product of a vector and a row of codes may be, of whose dot
// product only that of the codes is known, and what it is compared with.
type Bound struct {
	Scale        float32 // of the vector's codes
	Slope, Slack float32 // the error is at most Slope times what the row lost, plus Slack
	Least        float32
}

// Of returns the product of the codes as one of vectors, and its largest error. Each step is
// rounded, so that all kernels agree.
func (b *Bound) Of(dot int32, row Quantisation) (product, most float32) {
	return float32(float32(dot) * b.Scale * row.Scale), float32(b.Slope*row.Lost) + b.Slack
}

// Reach returns a bit for each of at most 64 rows: whether its product, by that of the codes,
// may be as large as b.Least. Wrong shapes panic.
func (k *Kernel) Reach(dots []int32, rows []Quantisation, b *Bound) (may uint64) {
	if len(dots) != len(rows) || len(dots) > 64 {
		panic("simd: shapes of a bound do not fit")
	}
	n := k.whole(len(dots))
	if n > 0 {
		may = k.reach(dots[:n], rows[:n], b)
	}
	return may | reachPortable(dots[n:], rows[n:], b)<<n
}

func reachPortable(dots []int32, rows []Quantisation, b *Bound) (may uint64) {
	rows, bound := rows[:len(dots)], *b
	for i, dot := range dots {
		if product, most := bound.Of(dot, rows[i]); !(product+most < bound.Least) {
			may |= 1 << i
		}
	}
	return may
}

// Quantise sets dst to x in whole numbers from -127 to 127, such that scale·dst
// is close to x. It returns the scale and, as lost, the Euclidean length of the
// difference x - scale·dst. A dst longer than x is filled up with zeros. The
// values must be finite.
func (k *Kernel) Quantise(dst []int8, x []float32) (scale, lost float32) {
	clear(dst[len(x):])
	n := k.whole(len(x))
	top := max(k.magnitude(x[:n]), magnitudePortable(x[n:]))
	inverse := 127 / top
	if scale = top / 127; top < 1e-30 {
		scale, inverse = 0, 0 // the quotients may not be finite
	}
	square := k.quantise(dst[:n], x[:n], inverse) + quantisePortable(dst[n:len(x)], x[n:], inverse)
	return scale, scale * float32(math.Sqrt(float64(square)))
}

// magnitudePortable returns the largest |x[i]|.
func magnitudePortable(x []float32) float32 {
	var bits uint32 // without the sign they compare as the floats do
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(bits)
}

// quantisePortable sets dst to x times inverse, rounded to even, and returns the
// sum of the squares of what rounding took off. The products must be within ±128.
func quantisePortable(dst []int8, x []float32, inverse float32) float32 {
	const rounder = 3 << 22 // near it, floats are whole numbers
	var sum float32
	for i, v := range x {
		y := float32(v * inverse) // rounded: no fused multiplication
		f := y + rounder
		dst[i] = int8(math.Float32bits(f))
		y -= f - rounder
		sum += y * y
	}
	return sum
}

const (
	// GroupSize is the number of queries of a [Group].
	GroupSize = 4
	// GroupRows is the number of rows that it is compared with.
	GroupRows = 64
)

// Group is queries that are compared with packed rows together: each with 16 rows at once,
// so that no register has to be added up, and each row is read once.
type Group struct {
	kernel *Kernel
	codes  []int8           // one query after another, zeros for those that are missing
	start  [GroupSize]int32 // what the rows' codes have in addition, times the query's
}

// NewGroup returns a group of at most GroupSize queries, all of one length. It is nil where
// this kernel has no routine for it, or none for that length.
func (k *Kernel) NewGroup(queries ...[]int8) *Group {
	length := len(queries[0])
	if k.dotGroup == nil || length == 0 || length%64 != 0 {
		return nil
	}
	g := &Group{kernel: k, codes: make([]int8, GroupSize*length)}
	for i, q := range queries {
		copy(g.codes[i*length:][:length], q)
		for _, c := range q {
			g.start[i] -= 128 * int32(c)
		}
	}
	return g
}

// Pack sets dst to GroupRows rows, which stand one after another, as [Group.Dot] takes them:
// four codes of each row, then the next four. Wrong shapes panic.
func (g *Group) Pack(dst, rows []int8) {
	words := len(g.codes) / GroupSize / 4
	g.kernel.Transpose(NewView(asFloats(dst), words, GroupRows), NewView(asFloats(rows), GroupRows, words))
}

// asFloats is the same memory; its values are moved and not computed with.
func asFloats(codes []int8) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(codes))), len(codes)/4)
}

// Dot sets dst to the dot products of the first query with each of the packed rows, then to
// those of the next. They are exact, as those of [Kernel.DotInt8] are. Wrong shapes panic.
func (g *Group) Dot(dst *[GroupSize * GroupRows]int32, packed []int8) {
	if len(packed) != len(g.codes)/GroupSize*GroupRows {
		panic("simd: shapes of a product do not fit")
	}
	g.kernel.dotGroup(dst, &g.start, g.codes, packed)
}
