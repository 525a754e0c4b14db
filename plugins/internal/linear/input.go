package linear

import "github.com/racflow/racflow/plugins/internal/simd"

// PanelCols is the number of columns that [Layer] and [Input] work on together:
// they begin at multiples of it.
const PanelCols = simd.PanelCols

// Input is the left-hand side of products with layers of one precision, in the form in
// which its kernel multiplies fastest. It is filled some columns at a time, so
// that what they are computed from need not be kept. One goroutine at a time may
// use it.
type Input struct {
	kernel     *simd.Kernel
	unit       *unit // nil for float32
	rows, cols int

	// float32: rows of floats, or groups of rows as bf16x3. int8: rows of which some
	// columns are still missing.
	data    []float32
	tile    []float32 // what results of tiles or panels stick out into
	scratch simd.Scratch

	packed     []byte // rows of bytes, of words or of bfloat16
	scale, low []float32
	factors    []float32 // of the columns, nil where there are none
	smoothed   []float32 // a row times these
	product    product
}

// NewInput returns an empty input for layers that [New] makes of the same kernel and
// precision.
func NewInput(k *simd.Kernel, p Precision) *Input {
	in := &Input{kernel: k}
	if p != Float32 {
		in.unit = unitFor(k, p)
	}
	return in
}

// Reset sets the shape. All columns must be set after it, from left to right.
func (in *Input) Reset(rows, cols int) *Input {
	in.rows, in.cols, in.factors = rows, cols, nil
	switch {
	case in.unit != nil:
		in.resetPacked()
	case hasTiles(in.kernel):
		in.data = aligned(in.data, in.groups().end()*in.groupSize())
	default:
		in.data = grow(in.data, rows*cols)
	}
	return in
}

// Smooth says, after Reset, that the layers of the input were made with s.
func (in *Input) Smooth(s *Smoothing) *Input {
	if s != nil {
		if in.unit == nil || in.unit.quantise == nil || len(s.input) != in.cols {
			panic("linear: smoothing does not fit the input")
		}
		in.factors, in.smoothed = s.input, grow(in.smoothed, in.cols)
	}
	return in
}

// Set sets the columns from col on to those of x. Its width is a multiple of
// [PanelCols], or reaches to the last column. For int8 a row has one scale, so it is
// quantised when its last column is there: cheapest is to set all at once. Wrong shapes
// panic.
func (in *Input) Set(col int, x simd.View) *Input {
	if x.Rows != in.rows || col%PanelCols != 0 || col+x.Cols > in.cols || x.Cols%PanelCols != 0 && col+x.Cols < in.cols {
		panic("linear: columns do not fit the input")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return in
	}
	x.Row(x.Rows - 1) // panics where the data is too short
	switch {
	case in.unit != nil && in.unit.round != nil:
		in.setBFloat16(col, x)
	case in.unit != nil:
		in.setInt8(col, x)
	case hasTiles(in.kernel):
		in.setBF16x3(col, x)
	default:
		in.copyFloats(col, x)
	}
	return in
}

// Step returns how many columns are best set at a time, a multiple of [PanelCols] or all.
func (in *Input) Step() int {
	if in.unit != nil && in.unit.quantise != nil {
		return roundUp(in.cols, PanelCols)
	}
	return PanelCols
}

func (in *Input) copyFloats(col int, x simd.View) {
	for i := range x.Rows {
		copy(in.data[i*in.cols+col:], x.Row(i))
	}
}

// grow returns a slice of n floats, s itself where it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func zeroed(s []float32, n int) []float32 {
	s = grow(s, n)
	clear(s)
	return s
}
