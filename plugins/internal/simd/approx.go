package simd

import "math"

// The tables below are read by the assembly too, at the offsets in the comments.

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
