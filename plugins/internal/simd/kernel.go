package simd

// Kernel is the set of routines for one instruction set. A Kernel is immutable
// and safe for concurrent use.
type Kernel struct {
	name string

	// tileRows and tileCols are the size of the largest block of results that tile computes at once, chosen so that
	// the block stays in registers. The number of rows of a block may be any multiple of rowStep up to tileRows.
	tileRows, rowStep, tileCols int

	// tile sets c[i][j] = bias[j] + Σ_p a[i][p]·b[p][j] for one block of the
	// given rows. Rows of a are lda floats apart, rows of b ldb, rows of c ldc.
	tile func(rows, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, bias []float32)

	// lanes is the number of floats in a register. The functions below take slices whose length is a multiple of
	// lanes; the methods handle the rest.
	lanes   int
	dot     func(a, b []float32) float32
	maximum func(x []float32) float32
	expSum  func(x []float32, shift, scale float32) float32
	expRows func(x []float32, rows, cols, stride int, scale float32, sums []float32) // nil: expSum does it row by row
	scale   func(x []float32, factor float32)
	gelu    func(x []float32)

	// The parts of a layer norm: x += y, with the sum of x; Σ (x-mean)²; and
	// x = (x-mean)·factor·gain + bias.
	addSum  func(x, y []float32) float32
	squares func(x []float32, mean float32) float32
	affine  func(x []float32, mean, factor float32, gain, bias []float32)

	// transpose sets dst[p][i] = src[i][p] for as many rows i as there are lanes
	// and depth columns p, a multiple of lanes.
	transpose func(dst []float32, ldd int, src []float32, lds, depth int)

	// addRows adds multiples of rows to dst. Rows are stride floats apart. The length of dst is a multiple of
	// RowBlock, and there is at least one term.
	addRows func(dst, rows []float32, stride int, terms []Term)

	// The length of a query of dotInt8 is a multiple of bytes, and the number of rows is a multiple of int8Rows;
	// DotInt8 handles the rest.
	bytes   int
	dotInt8 func(dst []int32, query, rows []int8, stride int)
	// dotGroup is nil if dotInt8 is as fast; see Group.
	dotGroup func(dst *[GroupSize * GroupRows]int32, start []int32, codes, packed []int8)
	// reach takes a number of rows that is a multiple of lanes.
	reach func(dots []int32, rows []Quantisation, b *Bound) uint64

	// magnitude and quantise take a number of floats that is a multiple of lanes.
	magnitude func(x []float32) float32
	quantise  func(dst []int8, x []float32, inverse float32) float32
}

// kernels lists the kernels that this CPU can run, fastest first; see kernel_amd64.go.
var kernels = append(native(), &Kernel{
	name:     "portable",
	tileRows: 2, rowStep: 2, tileCols: 4, tile: tilePortable,
	lanes: 1, dot: dotPortable, maximum: maximumPortable,
	expSum: expSumPortable, scale: scalePortable, gelu: geluPortable,
	addSum: addSumPortable, squares: squaresPortable, affine: affinePortable,
	transpose: transposePortable, addRows: addRowsPortable,
	bytes: 1, dotInt8: dotInt8Portable, reach: reachPortable,
	magnitude: magnitudePortable, quantise: quantisePortable,
})

// Best returns the fastest kernel that this CPU can run.
func Best() *Kernel { return kernels[0] }

// Portable returns the kernel in plain Go, which runs on every machine.
func Portable() *Kernel { return kernels[len(kernels)-1] }

// Kernels returns every kernel that this CPU can run, fastest first.
func Kernels() []*Kernel { return append([]*Kernel(nil), kernels...) }

// String returns the kernel's name: "avx512", "avx2" or "portable".
func (k *Kernel) String() string { return k.name }

// Dot returns Σ a[i]·b[i] with the best kernel. The lengths must be equal.
func Dot(a, b []float32) float32 { return Best().Dot(a, b) }
