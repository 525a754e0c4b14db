package simd

import "math"

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
