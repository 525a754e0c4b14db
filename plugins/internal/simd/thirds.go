package simd

import "unsafe"

// AMX multiplies tiles of bfloat16, the upper halves of float32, and adds up in
// float32. A float32 is the exact sum of three bfloat16: the number rounded to
// 8 bits, what is left of it rounded to 8 bits, and what is left then, which
// has no more than 8. The product of two floats is the sum of nine products of
// such thirds, each exact in float32. Of these, six are computed; the other three are together
// below 2^-25 of the product, a quarter of the last bit of a float32, so that a
// result is as exact as one of float32 multiplications (Henry, Tang and Heinecke
// 2019, arXiv:1904.06376). Numbers below about 1e-33 count as zero.
//
// A tile is 1 KB: 16 rows of 16 dwords, a pair of bfloat16 each. Of 32 floats in a
// row, the 16 dwords hold the pairs (0, 16), (1, 17), ... (15, 31).
//
//   - x: groups of up to 16 rows. A group has for each step of 32 columns the
//     tiles of the high, the middle and the low third.
//   - weights: panels of 32 outputs. A panel has for each step of 32 inputs, and
//     for each third, a tile for the first 16 outputs and one for the others. It
//     is turned over: a row for each pair of inputs, a dword for each output.
//
// These bits are kept in slices of float32, but are no numbers there.
const (
	groupRows  = 16
	stepCols   = 32
	tileDwords = 256
	thirds     = 3
	panelCols  = 32
)

// tileConfig is what LDTILECFG reads: the shape of the eight tiles.
type tileConfig struct {
	palette, startRow uint8
	_                 [14]uint8
	rowBytes          [16]uint16
	rows              [16]uint8
}

// configFor returns the shapes for pairs of groups of x with the given rows.
func configFor(first, second int) *tileConfig {
	c := &tileConfig{palette: 1}
	for i, rows := range [8]int{first, first, second, second, first, second, groupRows, groupRows} {
		c.rowBytes[i], c.rows[i] = 64, uint8(rows)
	}
	return c
}

var wholeGroups = configFor(groupRows, groupRows)

// packThirds sets the weights.
func (l *Linear) packThirds(w View, bias []float32) {
	var s Scratch
	steps := roundUp(l.depth, stepCols) / stepCols
	panel := steps * thirds * 2 * tileDwords
	l.thirds = aligned(nil, roundUp(l.cols, panelCols)/panelCols*panel)
	l.bias = make([]float32, roundUp(l.cols, panelCols))
	copy(l.bias, bias)
	group := aligned(nil, steps*thirds*tileDwords)
	for col := 0; col < l.cols; col += groupRows {
		clear(group)
		l.kernel.splitRows(group, w, col, min(groupRows, l.cols-col), &s)
		to := l.thirds[col/panelCols*panel+col/groupRows%2*tileDwords:]
		for tile := range steps * thirds {
			l.kernel.transpose(to[2*tile*tileDwords:], groupRows, group[tile*tileDwords:], groupRows, groupRows)
		}
	}
}

// splitRows writes a group of rows of x in thirds to dst.
func (k *Kernel) splitRows(dst []float32, x View, first, rows int, s *Scratch) {
	steps := roundUp(x.Cols, stepCols) / stepCols
	if x.Cols%stepCols == 0 {
		k.split(dst, x.Data[first*x.Stride:], rows, steps, x.Stride)
		return
	}
	padded := steps * stepCols
	s.tile = zeroed(s.tile, rows*padded)
	for i := range rows {
		copy(s.tile[i*padded:], x.Row(first+i))
	}
	k.split(dst, s.tile, rows, steps, padded)
}

// A block of x is in thirds at a time. Blocks are high, so that the weights,
// which are too many for any cache, are seldom read, and as deep as lets them
// stay in the second-level cache.
const (
	blockRows  = 512
	blockSteps = 12
)

// mulThirds is Mul. prepare, if not nil, changes x before it is used.
func (l *Linear) mulThirds(dst, x View, s *Scratch, prepare func([]float32)) {
	steps := roundUp(l.depth, stepCols) / stepCols
	group := min(steps, blockSteps) * thirds * tileDwords
	s.thirds = aligned(s.thirds, roundUp(min(blockRows, x.Rows), 2*groupRows)/groupRows*group)
	for top := 0; top < x.Rows; top += blockRows {
		rows := min(blockRows, x.Rows-top)
		for step := 0; step < steps; step += blockSteps {
			block := View{Data: x.Data[top*x.Stride+step*stepCols:], Rows: rows, Stride: x.Stride}
			block.Cols = min(x.Cols-step*stepCols, blockSteps*stepCols)
			if prepare != nil {
				for i := range rows {
					prepare(block.Row(i))
				}
			}
			l.mulBlock(View{Data: dst.Data[top*dst.Stride:], Rows: rows, Cols: dst.Cols, Stride: dst.Stride}, block, step, s)
		}
	}
}

// mulBlock adds the products of a block of x, which begins with the given step
// of the depth, to the block of dst, or to the bias where that is step 0. Groups
// go in pairs; what is left is a pair of smaller groups of about equal size.
func (l *Linear) mulBlock(dst, x View, step int, s *Scratch) {
	k, steps := l.kernel, roundUp(x.Cols, stepCols)/stepCols
	group := steps * thirds * tileDwords
	pairs, rest := x.Rows/(2*groupRows), x.Rows%(2*groupRows)
	whole, first := 2*pairs*groupRows, (rest+1)/2
	for i := range 2 * pairs {
		k.splitRows(s.thirds[i*group:], x, i*groupRows, groupRows, s)
	}
	left := s.thirds[2*pairs*group:]
	if rest > 0 {
		k.splitRows(left, x, whole, first, s)
	}
	if rest > 1 {
		k.splitRows(left[group:], x, whole+first, rest-first, s)
	}
	// One row that is left goes with whatever is in the second group.
	config := configFor(first, max(rest-first, 1))
	panel := roundUp(l.depth, stepCols) / stepCols * thirds * 2 * tileDwords
	for col := 0; col < l.cols; col += panelCols {
		t := tiles{steps: steps, accumulate: step > 0, bias: l.bias[col:]}
		t.b = l.thirds[col/panelCols*panel+step*thirds*2*tileDwords:]
		if pairs > 0 {
			t.config, t.pairs, t.rows, t.a = wholeGroups, pairs, groupRows, s.thirds
			t.next, t.chunks = t.b[min(panel, len(t.b)):], (panelChunks+pairs-1)/pairs
			t.multiply(k, dst, 0, whole, col, s)
		}
		if rest > 0 {
			t.config, t.pairs, t.rows, t.a = config, 1, first, left
			t.next, t.chunks = nil, 0
			t.multiply(k, dst, whole, rest, col, s)
		}
	}
}

// panelChunks is the size of a step of a panel, in what product fetches at once.
const panelChunks = thirds * 2 * tileDwords * 4 / 256

// tiles is the work of one call of product.
type tiles struct {
	config             *tileConfig
	pairs, steps, rows int
	a, b, bias         []float32
	accumulate         bool
	next               []float32
	chunks             int
}

// multiply computes rows of dst from row on, in the columns of a panel; by way of
// a copy where the tiles stick out of dst.
func (t *tiles) multiply(k *Kernel, dst View, row, rows, col int, s *Scratch) {
	c, stride := dst.Data[row*dst.Stride+col:], dst.Stride
	cols := min(panelCols, dst.Cols-col)
	out := cols < panelCols || rows == 1
	if out {
		s.tile = zeroed(s.tile, (rows+1)*panelCols)
		c, stride = s.tile, panelCols
		for i := 0; i < rows && t.accumulate; i++ {
			copy(c[i*stride:], dst.Row(row + i)[col:][:cols])
		}
	}
	from, ldfrom := t.bias, 0
	if t.accumulate {
		from, ldfrom = c, stride
	}
	k.product(t.config, t.pairs, t.steps, t.a, t.b, c, stride, from, ldfrom, t.rows, t.next, t.chunks)
	for i := 0; i < rows && out; i++ {
		copy(dst.Row(row + i)[col:][:cols], c[i*stride:])
	}
}

// aligned returns a slice of n floats that begins with a cache line, s itself
// where it is large enough. s must be from aligned.
func aligned(s []float32, n int) []float32 {
	const line = 16
	if cap(s) < n {
		s = make([]float32, n+line)
		s = s[-uintptr(unsafe.Pointer(&s[0]))/4%line:]
	}
	return s[:n]
}
