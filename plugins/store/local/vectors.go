package local

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/simd"
)

const (
	// blockRows is the number of vectors in a block.
	blockRows = 256
	// passRows is how many of them many queries pass over one after another: few
	// enough that the coarse ones stay in the first-level cache meanwhile.
	passRows = 64
)

// vectors keeps the vectors of all rows, holes included, in blocks.
type vectors struct {
	dimension int
	kernel    *simd.Kernel
	blocks    []block
}

// block is some vectors one after another, and again in a quarter of the memory
// with a precision that is enough to rule most of them out.
type block struct {
	exact  []float32
	coarse []int8 // width(dimension) bytes each; none if they are of no use
	grids  []grid // a grid for each coarse vector
}

// grid says what a coarse vector stands for: the vector is scale times the whole
// numbers plus a rest of length lost.
type grid struct{ scale, lost float32 }

// width is the length of a coarse vector: the dimension, and zeros up to where
// the kernels are fastest.
func width(dimension int) int { return (dimension + 63) &^ 63 }

// coarse reports whether coarse vectors save time. In plain Go bytes take no less
// of it than floats.
func (v *vectors) coarse() bool { return v.kernel != simd.Portable() }

// rows returns the number of vectors in a block.
func (v *vectors) rows(block int) int { return len(v.blocks[block].exact) / v.dimension }

func (v *vectors) append(x []float32) {
	if v.dimension == 0 {
		return
	}
	last := len(v.blocks) - 1
	if last < 0 || v.rows(last) == blockRows {
		v.blocks = append(v.blocks, block{exact: make([]float32, 0, blockRows*v.dimension)})
		last++
		if v.coarse() {
			v.blocks[last].coarse = make([]int8, 0, blockRows*width(v.dimension))
			v.blocks[last].grids = make([]grid, 0, blockRows)
		}
	}
	b := &v.blocks[last]
	b.exact = append(b.exact, x...)
	if v.coarse() {
		n := len(b.coarse)
		b.coarse = b.coarse[:n+width(v.dimension)]
		scale, lost := v.kernel.Quantise(b.coarse[n:], x)
		b.grids = append(b.grids, grid{scale, lost})
	}
}

func (v *vectors) row(r int32) []float32 {
	if v.dimension == 0 {
		return nil
	}
	return v.blocks[r/blockRows].exact[int(r%blockRows)*v.dimension:][:v.dimension]
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
