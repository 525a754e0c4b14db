package local

import "math"

// grid says what a coarse vector stands for: the vector is scale times the whole
// numbers plus a rest of length lost.
type grid struct{ scale, lost float32 }

// width is the length of a coarse vector: the dimension, and zeros up to where
// the kernels are fastest.
func width(dimension int) int { return (dimension + 63) &^ 63 }

// normTolerance is how far a squared norm may be from 1 for a vector to be kept
// as it was given: embedders hand in normalised ones, which come back unchanged.
const normTolerance = 1e-6

// normalise appends x with norm 1 to dst, or as it is if all of x is 0. It
// reports false if x holds NaN or an infinity.
func normalise(dst, x []float32) ([]float32, bool) {
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

func isZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}
