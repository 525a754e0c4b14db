package simd

import "math"

// tilePortable computes a block of 2 by 4: on amd64 the compiler keeps eight sums mostly in registers. Larger blocks
// are not faster.
func tilePortable(_, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, bias []float32) {
	x, y := a[:depth], a[lda:][:depth]
	c0, c1, c2, c3 := bias[0], bias[1], bias[2], bias[3]
	d0, d1, d2, d3 := c0, c1, c2, c3
	for i, u := range x {
		v, q := y[i], b[i*ldb:][:4]
		c0 += u * q[0]
		d0 += v * q[0]
		c1 += u * q[1]
		d1 += v * q[1]
		c2 += u * q[2]
		d2 += v * q[2]
		c3 += u * q[3]
		d3 += v * q[3]
	}
	c[0], c[1], c[2], c[3] = c0, c1, c2, c3
	d := c[ldc:][:4]
	d[0], d[1], d[2], d[3] = d0, d1, d2, d3
}

// dotPortable keeps four sums so that the additions do not wait for each other.
func dotPortable(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func maximumPortable(x []float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// expSumPortable replaces x by exp((x-shift)·scale) and returns the sum. The
// argument of exp must not exceed 88.
func expSumPortable(x []float32, shift, scale float32) float32 {
	var sum float32
	for i, v := range x {
		e := exp32((v - shift) * scale)
		x[i] = e
		sum += e
	}
	return sum
}

func scalePortable(x []float32, factor float32) {
	for i := range x {
		x[i] *= factor
	}
}

func geluPortable(x []float32) {
	for i, v := range x {
		x[i] = geluHalf * v * (1 + erf32(v*geluRoot))
	}
}

func addSumPortable(x, y []float32) float32 {
	var s [4]float32
	for len(x) >= 4 && len(y) >= 4 {
		x[0] += y[0]
		x[1] += y[1]
		x[2] += y[2]
		x[3] += y[3]
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range y {
		x[i] += v
		s[0] += x[i]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func squaresPortable(x []float32, mean float32) float32 {
	var sum float32
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

func affinePortable(x []float32, mean, factor float32, gain, bias []float32) {
	for i, v := range x {
		x[i] = (v-mean)*factor*gain[i] + bias[i]
	}
}

// transposePortable turns one row into a column, since lanes is 1.
func transposePortable(dst []float32, ldd int, src []float32, _, depth int) {
	for p, v := range src[:depth] {
		dst[p*ldd] = v
	}
}
