package simd

import "golang.org/x/sys/cpu"

// native lists the kernels in assembly that this CPU and its operating system
// support, fastest first.
func native() []*Kernel {
	var ks []*Kernel
	if cpu.X86.HasAVX512F {
		k := &Kernel{
			name:     "avx512",
			tileRows: 12, rowStep: 4, tileCols: 32, tile: tileAVX512,
			lanes: 16, dot: dotAVX512, maximum: maximumAVX512,
			expSum: expSumAVX512, expRows: expRowsAVX512, scale: scaleAVX512, gelu: geluAVX512,
			addSum: addSumAVX512, squares: squaresAVX512, affine: affineAVX512,
			transpose: transposeAVX512, addRows: addRowsAVX512,
			magnitude: magnitudeAVX512, quantise: quantiseAVX512,
			bytes: 32, dotInt8: dotInt8AVX2, reach: reachAVX512,
		}
		if cpu.X86.HasAVX512VNNI {
			k.bytes, k.dotInt8, k.dotGroup = 64, dotInt8VNNI, dotGroupVNNI
		}
		ks = append(ks, k)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ks = append(ks, &Kernel{
			name:     "avx2",
			tileRows: 6, rowStep: 2, tileCols: 16, tile: tileAVX2,
			lanes: 8, dot: dotAVX2, maximum: maximumAVX2,
			expSum: expSumAVX2, scale: scaleAVX2, gelu: geluAVX2,
			addSum: addSumAVX2, squares: squaresAVX2, affine: affineAVX2,
			transpose: transposeAVX2, addRows: addRowsAVX2,
			magnitude: magnitudeAVX2, quantise: quantiseAVX2,
			bytes: 32, dotInt8: dotInt8AVX2, reach: reachPortable,
		})
	}
	return ks
}

//go:noescape
func tileAVX512(rows, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, bias []float32)

//go:noescape
func dotAVX512(a, b []float32) float32

//go:noescape
func maximumAVX512(x []float32) float32

//go:noescape
func expSumAVX512(x []float32, shift, scale float32) float32

//go:noescape
func expRowsAVX512(x []float32, rows, cols, stride int, scale float32, sums []float32)

//go:noescape
func scaleAVX512(x []float32, factor float32)

//go:noescape
func geluAVX512(x []float32)

//go:noescape
func addSumAVX512(x, y []float32) float32

//go:noescape
func squaresAVX512(x []float32, mean float32) float32

//go:noescape
func affineAVX512(x []float32, mean, factor float32, gain, bias []float32)

//go:noescape
func transposeAVX512(dst []float32, ldd int, src []float32, lds, depth int)

//go:noescape
func addRowsAVX512(dst, rows []float32, stride int, terms []Term)

//go:noescape
func addRowsAVX2(dst, rows []float32, stride int, terms []Term)

//go:noescape
func tileAVX2(rows, depth int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, bias []float32)

//go:noescape
func dotAVX2(a, b []float32) float32

//go:noescape
func maximumAVX2(x []float32) float32

//go:noescape
func expSumAVX2(x []float32, shift, scale float32) float32

//go:noescape
func scaleAVX2(x []float32, factor float32)

//go:noescape
func geluAVX2(x []float32)

//go:noescape
func addSumAVX2(x, y []float32) float32

//go:noescape
func squaresAVX2(x []float32, mean float32) float32

//go:noescape
func affineAVX2(x []float32, mean, factor float32, gain, bias []float32)

//go:noescape
func transposeAVX2(dst []float32, ldd int, src []float32, lds, depth int)

//go:noescape
func dotInt8VNNI(dst []int32, query, rows []int8, stride int)

//go:noescape
func dotGroupVNNI(dst *[GroupSize * GroupRows]int32, start []int32, codes, packed []int8)

//go:noescape
func dotInt8AVX2(dst []int32, query, rows []int8, stride int)

//go:noescape
func reachAVX512(dots []int32, rows []Quantisation, b *Bound) uint64

//go:noescape
func magnitudeAVX512(x []float32) float32

//go:noescape
func quantiseAVX512(dst []int8, x []float32, inverse float32) float32

//go:noescape
func magnitudeAVX2(x []float32) float32

//go:noescape
func quantiseAVX2(dst []int8, x []float32, inverse float32) float32
