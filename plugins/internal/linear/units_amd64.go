package linear

import (
	"golang.org/x/sys/cpu"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// unitsOf lists the units in assembly that a processor with kernel k can run for products
// of precision p, fastest first.
func unitsOf(k *simd.Kernel, p Precision) []*unit {
	if p == BFloat16 {
		return bfloat16Units(k)
	}
	var us []*unit
	switch k.String() {
	case "amx", "avx512":
		if hasTiles(k) && cpu.X86.HasAMXInt8 {
			us = append(us, tileUnit(Int8, tilesInt8))
		}
		if cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BW {
			us = append(us, &unit{name: "vnni512", fast: true, size: 1, group: 4, cols: 32, lanes: 16,
				mul: productVNNI, bounds: boundsAVX512, multiply: multiplyAVX512, quantise: bytesAVX512})
		}
	case "portable":
		return nil
	}
	if cpu.X86.HasAVX2 {
		if cpu.X86.HasAVXVNNI {
			us = append(us, &unit{name: "avxvnni", fast: true, size: 1, group: 4, cols: 16, lanes: 8,
				mul: productAVXVNNI, bounds: boundsAVX2, multiply: multiplyAVX2, quantise: bytesAVX2})
		}
		us = append(us, &unit{name: "avx2", size: 2, group: 2, cols: 16, lanes: 8,
			mul: productAVX2, bounds: boundsAVX2, multiply: multiplyAVX2, quantise: wordsAVX2})
	}
	return us
}

func bfloat16Units(k *simd.Kernel) []*unit {
	var us []*unit
	switch k.String() {
	case "amx", "avx512":
		if hasTiles(k) {
			us = append(us, tileUnit(BFloat16, tilesBF16))
		}
		if cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512BW {
			// Not fast: on Sapphire Rapids VDPBF16PS takes more than twice the time of
			// float32 for the same product.
			us = append(us, &unit{name: "avx512bf16", size: 2, group: 2, cols: 32, lanes: 16,
				mul: productBF16, round: roundAVX512})
		}
	}
	return us
}

// tileUnit is AMX for a precision; tiles computes the sums.
func tileUnit(p Precision, tiles func(*tileConfig, *product)) *unit {
	u := &unit{name: "amx", unproven: true, fast: true, cols: PanelCols, lanes: 16}
	finish := finishBF16AVX512
	if p == Int8 {
		u.size, u.group, finish = 1, 4, finishInt8AVX512
		u.bounds, u.multiply, u.quantise = boundsAVX512, multiplyAVX512, bytesAVX512
	} else {
		u.size, u.group, u.round = 2, 2, roundAVX512
	}
	u.mul = func(p *product) {
		p.sums = grow(p.sums, roundUp(p.rows, rowBlock)*PanelCols)
		tiles(wholeGroups, p)
		finish(p)
	}
	return u
}

//go:noescape
func tilesInt8(config *tileConfig, p *product)

//go:noescape
func tilesBF16(config *tileConfig, p *product)

//go:noescape
func finishInt8AVX512(p *product)

//go:noescape
func finishBF16AVX512(p *product)

//go:noescape
func productVNNI(p *product)

//go:noescape
func productBF16(p *product)

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

//go:noescape
func roundAVX512(dst []byte, x []float32)
