package linear

import (
	"golang.org/x/sys/cpu"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// vnni512, avxvnni and avx2 are the units in assembly.
var (
	vnni512 = &unit{name: "vnni512", fast: true, size: 1, group: 4, cols: 32, lanes: 16,
		mul: productVNNI, bounds: boundsAVX512, multiply: multiplyAVX512, quantise: bytesAVX512}
	avxvnni = &unit{name: "avxvnni", fast: true, size: 1, group: 4, cols: 16, lanes: 8,
		mul: productAVXVNNI, bounds: boundsAVX2, multiply: multiplyAVX2, quantise: bytesAVX2}
	avx2 = &unit{name: "avx2", size: 2, group: 2, cols: 16, lanes: 8,
		mul: productAVX2, bounds: boundsAVX2, multiply: multiplyAVX2, quantise: wordsAVX2}
)

// unitsOf lists the units in assembly that a processor with kernel k can run, fastest first.
func unitsOf(k *simd.Kernel) (us []*unit) {
	if k.String() == "avx512" && cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BW {
		us = append(us, vnni512)
	}
	if k.String() == "portable" || !cpu.X86.HasAVX2 {
		return us
	}
	if cpu.X86.HasAVXVNNI {
		us = append(us, avxvnni)
	}
	return append(us, avx2)
}

//go:noescape
func productVNNI(p *product)

//go:noescape
func productAVXVNNI(p *product)

//go:noescape
func productAVX2(p *product)

//go:noescape
func boundsAVX512(x []float32) (low, high float32)

//go:noescape
func boundsAVX2(x []float32) (low, high float32)

//go:noescape
func multiplyAVX512(dst, x, factors []float32)

//go:noescape
func multiplyAVX2(dst, x, factors []float32)

//go:noescape
func bytesAVX512(dst []byte, x []float32, low, inverse float32)

//go:noescape
func bytesAVX2(dst []byte, x []float32, low, inverse float32)

//go:noescape
func wordsAVX2(dst []byte, x []float32, low, inverse float32)
