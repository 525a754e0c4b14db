package local

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// blockRows is the number of vectors in a block: few enough that a block of
// usual dimension stays in the second-level cache while many queries pass over
// it.
const blockRows = 256

// vectors keeps the vectors of all rows, holes included, in blocks.
type vectors struct {
	dimension int
	kernel    *simd.Kernel
	blocks    [][]float32
}

func (v *vectors) append(x []float32) {
	if v.dimension == 0 {
		return
	}
	last := len(v.blocks) - 1
	if last < 0 || len(v.blocks[last]) == blockRows*v.dimension {
		v.blocks = append(v.blocks, make([]float32, 0, blockRows*v.dimension))
		last++
	}
	v.blocks[last] = append(v.blocks[last], x...)
}

func (v *vectors) row(r int32) []float32 {
	if v.dimension == 0 {
		return nil
	}
	return v.blocks[r/blockRows][int(r%blockRows)*v.dimension:][:v.dimension]
}

// cosine returns the cosine of a normalised query and a row; 0 for a row
// without direction.
func (v *vectors) cosine(query []float32, r int32) float32 {
	return v.kernel.Dot(query, v.row(r))
}

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
