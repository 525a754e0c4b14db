package linear

import (
	"unsafe"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// AMX multiplies tiles of bfloat16, the upper halves of float32, and adds up in
// float32. bf16x3 is a float32 as the exact sum of three bfloat16: the high part is
// the number rounded to 8 bits, the middle part is the rest rounded to 8 bits, and
// the low part is what is left then, which has no more than 8. The product of two
// floats is the sum of nine products of such parts, each exact in float32. Six are
// computed. The other three are together at most about 2^-24 of the product, which is
// what a multiplication of float32 may lose by rounding (Henry, Tang and Heinecke
// 2019, arXiv:1904.06376). Values below about 1e-33 count as zero.
//
// A tile is 1 KB: 16 rows of 16 pairs of bfloat16. A step is 32 terms of the sums:
//
//   - x: groups of up to 16 rows. A group has for each step a tile of the high,
//     of the middle and of the low parts, with a row for each row of x. Of the
//     32 terms the pairs are (0, 16), (1, 17), ... (15, 31).
//   - weights: panels of 32 outputs. A panel has for each step, and for each
//     part, a tile for the first 16 outputs and one for the others, with a row
//     for each pair of terms and a pair for each output.
//
// The parts are kept in slices of float32, but are no numbers there.
const (
	groupRows  = 16
	stepCols   = 32
	tileDwords = 256
	bf16Parts  = 3
)

// tileConfig is what LDTILECFG reads: the shape of the eight tiles.
type tileConfig struct {
	palette  uint8
	_        [15]uint8 // first, the row to begin with
	rowBytes [16]uint16
	rows     [16]uint8
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

// groups says how rows are cut into groups: pairs of full ones, and what is left
// as a pair of smaller groups of about equal size.
type groups struct{ pairs, first, last int }

func (in *Input) groups() groups {
	rest := in.rows % (2 * groupRows)
	return groups{in.rows / (2 * groupRows), (rest + 1) / 2, rest / 2}
}

// end returns the number of groups, with an empty one beside a single row.
func (g groups) end() int {
	if g.first > 0 {
		return 2*g.pairs + 2
	}
	return 2 * g.pairs
}

// groupSize returns the floats from one group to the next.
func (in *Input) groupSize() int { return stepsIn(in.cols) * bf16Parts * tileDwords }

func stepsIn(cols int) int { return roundUp(cols, stepCols) / stepCols }

// setBF16x3 is Set for an input as bf16x3.
func (in *Input) setBF16x3(col int, x simd.View) {
	g, row := in.groups(), 0
	for group := range g.end() {
		rows := groupRows
		switch group - 2*g.pairs {
		case 0:
			rows = g.first
		case 1:
			rows = g.last
		}
		to := in.data[group*in.groupSize()+col/stepCols*bf16Parts*tileDwords:]
		in.tile = splitRows(to, x, row, rows, in.tile)
		row += rows
	}
}

// splitRows writes rows of x as bf16x3 to a group. It returns memory for its
// next call.
func splitRows(dst []float32, x simd.View, first, rows int, memory []float32) []float32 {
	if rows == 0 {
		return memory
	}
	if x.Cols%stepCols == 0 {
		split(dst, x.Data[first*x.Stride:], rows, stepsIn(x.Cols), x.Stride)
		return memory
	}
	padded := roundUp(x.Cols, stepCols)
	memory = zeroed(memory, rows*padded)
	for i := range rows {
		copy(memory[i*padded:], x.Row(first+i))
	}
	split(dst, memory, rows, stepsIn(x.Cols), padded)
	return memory
}

// packBF16x3 sets the weights.
func (l *Layer) packBF16x3(w simd.View) {
	steps, panel := stepsIn(l.depth), l.panelSize()
	l.bf16x3 = aligned(nil, roundUp(l.cols, PanelCols)/PanelCols*panel)
	group := aligned(nil, steps*bf16Parts*tileDwords)
	var memory []float32
	for col := 0; col < l.cols; col += groupRows {
		clear(group)
		memory = splitRows(group, w, col, min(groupRows, l.cols-col), memory)
		to := l.bf16x3[col/PanelCols*panel+col/groupRows%2*tileDwords:]
		for tile := range steps * bf16Parts {
			l.kernel.Transpose(square(to[2*tile*tileDwords:]), square(group[tile*tileDwords:]))
		}
	}
}

// square returns a tile as a matrix.
func square(tile []float32) simd.View { return simd.NewView(tile, groupRows, groupRows) }

// panelSize returns the floats from one panel of weights to the next.
func (l *Layer) panelSize() int { return stepsIn(l.depth) * 2 * bf16Parts * tileDwords }

// mulBF16x3 computes the outputs from col on, with the inputs from first on.
func (l *Layer) mulBF16x3(dst simd.View, in *Input, col, first int) {
	g, panel := in.groups(), l.panelSize()
	t := tiles{steps: stepsIn(in.cols), accumulate: first > 0}
	left := in.data[2*g.pairs*in.groupSize():]
	config := configFor(g.first, max(g.last, 1)) // a single row goes with an empty group
	whole := 2 * g.pairs * groupRows
	for c := 0; c < dst.Cols; c += PanelCols {
		at := (col + c) / PanelCols * panel
		t.b, t.bias = l.bf16x3[at+first/stepCols*2*bf16Parts*tileDwords:], l.bias[col+c:]
		if g.pairs > 0 {
			t.config, t.pairs, t.rows, t.a = wholeGroups, g.pairs, groupRows, in.data
			t.next, t.chunks = t.b[min(panel, len(t.b)):], (stepChunks+g.pairs-1)/g.pairs
			in.tile = t.multiply(dst, 0, whole, c, in.tile)
		}
		if g.first > 0 {
			t.config, t.pairs, t.rows, t.a = config, 1, g.first, left
			t.next, t.chunks = nil, 0
			in.tile = t.multiply(dst, whole, g.first+g.last, c, in.tile)
		}
	}
}

// stepChunks is the size of a step of a panel, in what product fetches at once.
const stepChunks = 2 * bf16Parts * tileDwords * 4 / 256

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
// memory, which it returns, where the tiles stick out of dst.
func (t *tiles) multiply(dst simd.View, row, rows, col int, memory []float32) []float32 {
	c, stride := dst.Data[row*dst.Stride+col:], dst.Stride
	cols := min(PanelCols, dst.Cols-col)
	out := cols < PanelCols || rows == 1
	if out {
		memory = zeroed(memory, (rows+1)*PanelCols)
		c, stride = memory, PanelCols
		for i := 0; i < rows && t.accumulate; i++ {
			copy(c[i*stride:], dst.Row(row + i)[col:][:cols])
		}
	}
	from, ldfrom := t.bias, 0
	if t.accumulate {
		from, ldfrom = c, stride
	}
	multiplyTiles(t.config, t.pairs, t.steps, t.a, t.b, c, stride, from, ldfrom, t.rows, t.next, t.chunks)
	for i := 0; i < rows && out; i++ {
		copy(dst.Row(row + i)[col:][:cols], c[i*stride:])
	}
	return memory
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
