package linear

import (
	"encoding/binary"
	"unsafe"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// Weights in int8 are stored in panels of 32 outputs. A panel consists of lines of 128 bytes. For each group of 4
// terms, a line holds all outputs one after another. VPDPBUSD multiplies a line by the same group of a row,
// broadcast. If bytes are multiplied as 16-bit words (AVX2), a line has 2 terms in 64 bytes.
//
// A row of the input is its terms one after another. Rows and panels are padded with zeros to a multiple of 64 terms.
// Rows are added up to whole blocks; their contents do not matter.

// rowBlock divides the number of rows in memory.
const rowBlock = 32

type packedWeights struct {
	unit  *unit
	data  []byte
	panel int // bytes per panel

	// By output: its scale, and the sum of its weights times that scale, over all terms and over each slice of terms.
	colScale  []float32
	colSum    []float32
	sliceSums [][]float32
}

func (in *Input) lda() int { return paddedTerms(in.cols) * in.unit.size }

// quantise sets the rows as integers.
func (in *Input) quantise(x simd.View, s *Smoothing) {
	lda := in.lda()
	in.packed = grow(in.packed, roundUp(in.rows, rowBlock)*lda)
	in.scale, in.low = grow(in.scale, in.rows), grow(in.low, in.rows)
	if x.Cols == 0 {
		return
	}
	var factors []float32
	if s != nil {
		factors, in.smoothed = s.input, grow(in.smoothed, in.cols)
	}
	for i := range x.Rows {
		row := in.packed[i*lda:][:lda]
		in.scale[i], in.low[i] = in.unit.quantiseRow(row, x.Row(i), factors, in.smoothed)
		clear(row[in.cols*in.unit.size:])
	}
}

// quantiseRow writes x, or its product with factors, as integers from 0 to 255, so that scale·dst + low is close to
// it. It needs memory if there are factors.
func (u *unit) quantiseRow(dst []byte, x, factors, memory []float32) (scale, lowest float32) {
	n := len(x) &^ (u.lanes - 1)
	if factors != nil {
		if n > 0 {
			u.multiply(memory[:n], x[:n], factors[:n])
		}
		multiplyPortable(memory[n:], x[n:], factors[n:])
		x = memory
	}
	low, high := x[0], x[0]
	if n > 0 {
		low, high = u.bounds(x[:n])
	}
	for _, v := range x[n:] {
		low, high = min(low, v), max(high, v)
	}
	scale = (high - low) / 255
	inverse := 255 / (high - low)
	if high-low < 1e-30 {
		scale, inverse = 0, 0 // the quotients may not be finite
	}
	if n > 0 {
		u.quantise(dst, x[:n], low, inverse)
	}
	for i, v := range x[n:] {
		var one [1]byte
		bytesPortable(one[:], []float32{v}, low, inverse)
		at := (n + i) * u.size
		dst[at] = one[0]
		clear(dst[at+1 : at+u.size])
	}
	return scale, low
}

// pack creates panels of weights. slice is the number of terms in a slice, a multiple of 64.
func (u *unit) pack(k *simd.Kernel, w simd.View, smooth *Smoothing, slice int) *packedWeights {
	terms, cols := paddedTerms(w.Cols), roundUp(w.Rows, PanelCols)
	p := &packedWeights{unit: u, panel: terms * PanelCols, colScale: make([]float32, cols), colSum: make([]float32, cols)}
	p.data = alignedBytes(cols * terms)
	for range (w.Cols + slice - 1) / slice {
		p.sliceSums = append(p.sliceSums, make([]float32, cols))
	}
	row, whole, smoothed := make([]byte, terms), make([]int8, terms), make([]float32, w.Cols)
	for j := range w.Rows {
		scale, _ := k.Quantise(whole, smooth.apply(smoothed, w.Row(j)))
		all := 0
		for n, sums := range p.sliceSums {
			sum := 0
			for i := n * slice; i < min((n+1)*slice, len(whole)); i++ {
				row[i] = byte(whole[i])
				sum += int(whole[i])
			}
			sums[j] = scale * float32(sum)
			all += sum
		}
		p.colScale[j], p.colSum[j] = scale, scale*float32(all)
		u.interleave(p.data[j/PanelCols*p.panel:], row, j%PanelCols)
	}
	return p
}

// interleave writes the terms of an output to their places in a panel.
func (u *unit) interleave(panel, row []byte, col int) {
	if u.group == 2 {
		for i := 0; i < len(row); i += 2 {
			copy(panel[i*PanelCols+2*col:], row[i:i+2])
		}
		return
	}
	for i := 0; i < len(row); i += 4 {
		binary.LittleEndian.PutUint32(panel[i*PanelCols+4*col:], binary.LittleEndian.Uint32(row[i:]))
	}
}

// mulPacked computes the outputs from col on, with the inputs from first on.
func (l *Layer) mulPacked(dst simd.View, in *Input, col, first int) {
	w, u := l.packed, l.packed.unit
	if in.unit != u {
		panic("linear: layer and input differ in precision")
	}
	sums := w.colSum
	if in.cols < l.depth {
		sums = w.sliceSums[first/l.Slice()]
	}
	p := &in.product
	p.rows, p.a, p.lda = dst.Rows, in.packed, in.lda()
	p.steps = p.lda / 16
	p.scale, p.low = in.scale, in.low
	in.tile = grow(in.tile, dst.Rows*u.cols)
	for c := 0; c < dst.Cols; c += u.cols {
		at := col + c
		p.b = w.data[at/PanelCols*w.panel+first*PanelCols+at%PanelCols*u.group:]
		p.colScale, p.colSum = w.colScale[at:], sums[at:]
		p.from, p.ldfrom = l.bias[at:], 0
		cols := min(u.cols, dst.Cols-c)
		p.c, p.ldc = dst.Data[c:], dst.Stride
		if cols < u.cols {
			p.c, p.ldc = in.tile, u.cols
		}
		if first > 0 {
			p.from, p.ldfrom = p.c, p.ldc
			for i := 0; i < dst.Rows && cols < u.cols; i++ {
				copy(p.c[i*p.ldc:], dst.Row(i)[c:])
			}
		}
		u.mul(p)
		for i := 0; i < dst.Rows && cols < u.cols; i++ {
			copy(dst.Row(i)[c:], p.c[i*p.ldc:][:cols])
		}
	}
}

// alignedBytes returns n bytes that begin at a cache line.
func alignedBytes(n int) []byte {
	const line = 64
	s := make([]byte, n+line)
	return s[-uintptr(unsafe.Pointer(&s[0]))%line:][:n:n]
}
