package linear

import "math"

var portableInt8 = &unit{name: "portable", size: 1, group: 4, cols: PanelCols, lanes: 1,
	mul: productInt8Portable, bounds: boundsPortable, multiply: multiplyPortable, quantise: bytesPortable}

// lineBytes is the size of a panel's data for four bytes of a row.
const lineBytes = 4 * PanelCols

func productInt8Portable(p *product) {
	for i := range p.rows {
		var sums [PanelCols]int32
		row, b := p.a[i*p.lda:][:16*p.steps], p.b
		for len(row) >= 4 {
			x0, x1, x2, x3 := int32(row[0]), int32(row[1]), int32(row[2]), int32(row[3])
			line := b[:lineBytes]
			for j := range sums {
				w := line[4*j:][:4]
				sums[j] += x0*int32(int8(w[0])) + x1*int32(int8(w[1])) + x2*int32(int8(w[2])) + x3*int32(int8(w[3]))
			}
			row, b = row[4:], b[lineBytes:]
		}
		p.finish(i, sums[:])
	}
}

// finish sets row i of c to its sums as floats. The conversions keep the compiler from fusing multiplications with
// additions, which would round differently.
func (p *product) finish(i int, sums []int32) {
	c, from := p.c[i*p.ldc:][:len(sums)], p.from[i*p.ldfrom:][:len(sums)]
	scale, low := p.scale[i], p.low[i]
	for j, sum := range sums {
		y := float32(float32(float32(sum)*p.colScale[j]) * scale)
		y = float32(y + float32(low*p.colSum[j]))
		c[j] = y + from[j]
	}
}

func boundsPortable(x []float32) (low, high float32) {
	low, high = x[0], x[0]
	for _, v := range x[1:] {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func multiplyPortable(dst, x, factors []float32) {
	for i, v := range x {
		dst[i] = v * factors[i]
	}
}

func bytesPortable(dst []byte, x []float32, low, inverse float32) {
	const rounder = 1 << 23 // above it, floats are whole numbers
	for i, v := range x {
		dst[i] = byte(math.Float32bits(float32((v-low)*inverse) + rounder))
	}
}
