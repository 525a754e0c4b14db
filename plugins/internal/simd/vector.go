package simd

import (
	"math"
	"unsafe"
)

// The assembly also reads the tables below, at the offsets in the comments.

// expTable holds the constants of exp32, after expf in the Cephes library
// (Moshier, netlib.org/cephes): exp(x) = 2^n · exp(f) with n = round(x·log2 e)
// and |f| <= ln(2)/2, where ln(2) is split in two so that f keeps its bits.
var expTable = [...]float32{
	-87,               // 0: the smallest argument; below it exp is not normal
	math.Log2E,        // 4
	-0.693359375,      // 8: minus ln(2), upper part
	2.12194440e-4,     // 12: minus ln(2), lower part
	1.9875691500e-4,   // 16: the polynomial, highest power first
	1.3981999507e-3,   // 20
	8.3334519073e-3,   // 24
	4.1665795894e-2,   // 28
	1.6666665459e-1,   // 32
	5.0000001201e-1,   // 36
	1,                 // 40
	127,               // 44: the bias of a float32's exponent
	float32(negative), // 48: where a search for the maximum starts
}

// negative is the lowest finite float32.
const negative = -math.MaxFloat32

// exp32 returns exp(x) for x <= 88, and exp(-87) below -87.
func exp32(x float32) float32 {
	t := &expTable
	x = max(x, t[0])
	n := float32(math.RoundToEven(float64(x * t[1])))
	f := x + n*t[2] + n*t[3]
	p := t[4]
	for _, c := range t[5:10] {
		p = p*f + c
	}
	p = p*f*f + f + 1
	return p * math.Float32frombits(uint32(int32(n+t[11]))<<23)
}

const (
	geluRoot = 0.70710678118654752440 // the square root of 1/2
	geluHalf = 0.5
)

// geluTable holds the constants of GELU and of erf32. The error function is the
// rational approximation x·P(x²)/Q(x²) that Eigen uses for float32
// (eigen.tuxfamily.org, MathFunctionsImpl.h).
var geluTable = [...]float32{
	3.925,                 // 0: erf is 1 to the last bit above this
	-3.925,                // 4
	geluRoot,              // 8
	geluHalf,              // 12
	1,                     // 16
	-2.72614225801306e-10, // 20: P, highest power first
	2.77068142495902e-08,  // 24
	-2.10102402082508e-06, // 28
	-5.69250639462346e-05, // 32
	-7.34990630326855e-04, // 36
	-2.95459980854025e-03, // 40
	-1.60960333262415e-02, // 44
	-1.45660718464996e-05, // 48: Q
	-2.13374055278905e-04, // 52
	-1.68282697438203e-03, // 56
	-7.37332916720468e-03, // 60
	-1.42647390514189e-02, // 64
}

// erf32 returns the error function of x.
func erf32(x float32) float32 {
	t := &geluTable
	x = min(max(x, t[1]), t[0])
	x2 := x * x
	p, q := t[5], t[12]
	for _, c := range t[6:12] {
		p = p*x2 + c
	}
	for _, c := range t[13:17] {
		q = q*x2 + c
	}
	return x * p / q
}

// DotInt8 sets dst[i] to the dot product of a query and row i of rows. The rows follow one another, each as long as
// the query. Values must be from -127 to 127, and the query at most 2^17 long. The results are then exact, so that
// all kernels agree. It is fastest if the length is a multiple of 64. Wrong shapes panic.
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

// int8Rows is the number of rows that dotInt8 processes at a time.
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

// Quantisation describes a vector's int8 codes: the vector is Scale times the codes, plus a rest of length Lost.
type Quantisation struct{ Scale, Lost float32 }

// Bound bounds the product of a vector and a row when only the product of their codes is known. Least is the value to
// compare with.
type Bound struct {
	Scale        float32 // scale of the vector's codes
	Slope, Slack float32 // the error is at most Slope times the row's Lost, plus Slack
	Least        float32
}

// Of converts the product of codes into the product of vectors, and returns its largest error. Each step is rounded,
// so that all kernels agree.
func (b *Bound) Of(dot int32, row Quantisation) (product, most float32) {
	return float32(float32(dot) * b.Scale * row.Scale), float32(b.Slope*row.Lost) + b.Slack
}

// Reach returns a bit for each of at most 64 rows: set if the row's product may be as large as b.Least, given the
// product of the codes. Wrong shapes panic.
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

// Quantise sets dst to x as integers from -127 to 127, so that scale·dst is close to x. It returns the scale and, as
// lost, the Euclidean length of the difference x - scale·dst. If dst is longer than x, it is filled with zeros. The
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
	var bits uint32 // without the sign, the bits compare like the floats
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(bits)
}

// quantisePortable sets dst to x times inverse, rounded to even. It returns the sum of the squared rounding errors.
// The products must be within ±128.
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

// Sizes of a comparison by a [Group].
const (
	GroupSize = 4  // queries
	GroupRows = 64 // rows
)

// Group holds queries to compare with packed rows. Each query is compared with 16 rows at once.
type Group struct {
	kernel *Kernel
	length int
	codes  []int8  // one query after another, with zeros up to a multiple of GroupSize
	start  []int32 // by query: start of the sums, since 128 is added to each code of a row
}

// NewGroup returns a group of queries of one length. It is nil if this kernel has no routine for groups, or none for
// that length.
func (k *Kernel) NewGroup(queries [][]int8) *Group {
	length := len(queries[0])
	if k.dotGroup == nil || length == 0 || length%64 != 0 {
		return nil
	}
	n := roundUp(len(queries), GroupSize)
	g := &Group{k, length, make([]int8, n*length), make([]int32, n)}
	for i, q := range queries {
		copy(g.codes[i*length:][:length], q)
		for _, c := range q {
			g.start[i] -= 128 * int32(c)
		}
	}
	return g
}

// Pack sets dst to GroupRows successive rows in the order for [Group.Dot]: four codes of each row, then the next
// four. Wrong shapes panic.
func (g *Group) Pack(dst, rows []int8) {
	from := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)/4) // moved only, not used as numbers
	to := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)/4)
	width := g.length / 4
	_, _ = from[GroupRows*width-1], to[GroupRows*width-1]
	for row := 0; row < GroupRows; row += g.kernel.lanes {
		g.kernel.transpose(to[row:], GroupRows, from[row*width:], width, width)
	}
}

// Dot sets dst to the dot products of one query with each of the packed rows, then those of the next queries. They
// are exact, like those of [Kernel.DotInt8]. Wrong shapes panic.
func (g *Group) Dot(dst *[GroupSize * GroupRows]int32, first int, packed []int8) {
	if len(packed) != g.length*GroupRows {
		panic("simd: shapes of a product do not fit")
	}
	g.kernel.dotGroup(dst, g.start[first:first+GroupSize], g.codes[first*g.length:(first+GroupSize)*g.length], packed)
}

// Term is a row number of a matrix, with a factor for the row.
type Term struct {
	Row    int32
	Factor float32
}

// AddRows adds multiples of rows to dst, in the order of the terms: the product of a sparse vector and a matrix. dst
// has as many floats as the matrix has columns. dst must not overlap the matrix, unless it is the only row that the
// terms name. Wrong shapes and rows panic.
func (k *Kernel) AddRows(dst []float32, rows View, terms []Term) {
	if len(dst) != rows.Cols {
		panic("simd: row and matrix differ in size")
	}
	if len(terms) == 0 || len(dst) == 0 {
		return
	}
	last := terms[0].Row
	for _, t := range terms {
		if last = max(last, t.Row); t.Row < 0 {
			panic("simd: no row of the matrix")
		}
	}
	if int(last) >= rows.Rows {
		panic("simd: no row of the matrix")
	}
	rows.Row(int(last)) // panics if the data is too short
	n := len(dst) / RowBlock * RowBlock
	if n > 0 {
		k.addRows(dst[:n], rows.Data, rows.Stride, terms)
	}
	if n < len(dst) {
		addRowsPortable(dst[n:], rows.Data[n:], rows.Stride, terms)
	}
}

// RowBlock is the block size of [Kernel.AddRows], which is fastest if the length of dst is a multiple of it.
const RowBlock = 32

func addRowsPortable(dst, rows []float32, stride int, terms []Term) {
	for _, t := range terms {
		row := rows[int(t.Row)*stride:][:len(dst)]
		for j, x := range row {
			dst[j] += t.Factor * x
		}
	}
}

// whole returns the greatest part of n that the kernel's vector functions can process.
func (k *Kernel) whole(n int) int { return n &^ (k.lanes - 1) }

// Dot returns Σ a[i]·b[i]. It panics if the lengths differ.
func (k *Kernel) Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic("simd: dot product of vectors of different length")
	}
	n := k.whole(len(a))
	return k.dot(a[:n], b[:n]) + dotPortable(a[n:], b[n:])
}

// Softmax replaces x by exp(scale·x[i]) / Σ exp(scale·x[j]). The scale must not
// be negative. Values whose exponential is below exp(-87) times the largest one
// become about 1e-38 instead of zero. Relative error: about 3e-7.
func (k *Kernel) Softmax(x []float32, scale float32) {
	if len(x) == 0 {
		return
	}
	n := k.whole(len(x))
	head, tail := x[:n], x[n:]
	top := max(k.maximum(head), maximumPortable(tail))
	sum := k.expSum(head, top, scale) + expSumPortable(tail, top, scale)
	k.scale(head, 1/sum)
	scalePortable(tail, 1/sum)
}

// ExpRows replaces every row of x by exp(scale·(x[i]-m)), where m is the largest value of the row, and sets sums to
// the sums of the rows. This is a softmax before the division by the sums. The scale must not be negative, and the
// number of columns must be a multiple of [ExpCols]. Values below exp(-87) become about 1e-38 instead of zero. The
// relative error is that of [Kernel.Softmax]. Wrong shapes panic.
func (k *Kernel) ExpRows(x View, scale float32, sums []float32) {
	if len(sums) != x.Rows || x.Cols%ExpCols != 0 {
		panic("simd: shapes of a softmax do not fit")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	x.Row(x.Rows - 1) // panics if the data is too short
	if k.expRows != nil {
		k.expRows(x.Data, x.Rows, x.Cols, x.Stride, scale, sums)
		return
	}
	for i := range sums {
		row := x.Row(i)
		sums[i] = k.expSum(row, k.maximum(row), scale)
	}
}

// ExpCols divides the number of columns for [Kernel.ExpRows].
const ExpCols = 16

// Scale multiplies x by a factor.
func (k *Kernel) Scale(x []float32, factor float32) {
	n := k.whole(len(x))
	k.scale(x[:n], factor)
	scalePortable(x[n:], factor)
}

// Add adds y to x. It panics if the lengths differ.
func (k *Kernel) Add(x, y []float32) {
	if len(x) != len(y) {
		panic("simd: sum of vectors of different length")
	}
	n := k.whole(len(x))
	k.addSum(x[:n], y[:n])
	addSumPortable(x[n:], y[n:])
}

// GELU replaces x by x·Φ(x), the exact form with the error function (Hendrycks
// and Gimpel 2016, arXiv:1606.08415). Absolute error: about 3e-7·max(1, |x|).
func (k *Kernel) GELU(x []float32) {
	n := k.whole(len(x))
	k.gelu(x[:n])
	geluPortable(x[n:])
}

// AddNorm sets x to the layer norm of x + change: mean 0 and variance 1, then a gain and a bias for each element (Ba
// et al. 2016, arXiv:1607.06450). The lengths must be equal. The error is about 1e-6 times the gain, if epsilon does
// not exceed the variance.
func (k *Kernel) AddNorm(x, change, gain, bias []float32, epsilon float32) {
	if len(change) != len(x) || len(gain) != len(x) || len(bias) != len(x) {
		panic("simd: layer norm of vectors of different length")
	}
	n, count := k.whole(len(x)), float32(len(x))
	mean := (k.addSum(x[:n], change[:n]) + addSumPortable(x[n:], change[n:])) / count
	variance := (k.squares(x[:n], mean) + squaresPortable(x[n:], mean)) / count
	factor := 1 / float32(math.Sqrt(float64(variance+epsilon)))
	k.affine(x[:n], mean, factor, gain[:n], bias[:n])
	affinePortable(x[n:], mean, factor, gain[n:], bias[n:])
}
