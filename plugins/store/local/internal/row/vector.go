package row

import (
	"math"
	"slices"
)

// NormTolerance is how far a squared norm may be from 1 for a vector to be kept
// as it was given: embedders hand in normalised ones, which come back unchanged.
const NormTolerance = 1e-6

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
	if square == 0 || math.Abs(square-1) < NormTolerance {
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
