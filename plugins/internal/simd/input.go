package simd

// PanelCols is the number of columns that [Linear] and [Input] work on together:
// they begin at multiples of it.
const PanelCols = 32

// Input is the left-hand side of products with linear layers, in the form in
// which its kernel multiplies fastest. It is filled some columns at a time, so
// that what they are computed from need not be kept. One goroutine at a time may
// use it.
type Input struct {
	kernel     *Kernel
	rows, cols int
	data       []float32 // rows of floats, or groups of rows as bf16x3
	tile       []float32 // what tiles stick out into
	scratch    Scratch
}

// NewInput returns an empty input for the layers of kernel k.
func (k *Kernel) NewInput() *Input { return &Input{kernel: k} }

// Reset sets the shape. All columns must be set after it.
func (in *Input) Reset(rows, cols int) *Input {
	in.rows, in.cols = rows, cols
	if in.kernel.product == nil {
		in.data = grow(in.data, rows*cols)
	} else {
		in.data = aligned(in.data, in.groups().end()*in.groupSize())
	}
	return in
}

// Set sets the columns from col on to those of x. Its width is a multiple of
// [PanelCols], or reaches to the last column. Wrong shapes panic.
func (in *Input) Set(col int, x View) *Input {
	if x.Rows != in.rows || col%PanelCols != 0 || col+x.Cols > in.cols || x.Cols%PanelCols != 0 && col+x.Cols < in.cols {
		panic("simd: columns do not fit the input")
	}
	switch {
	case x.Rows == 0 || x.Cols == 0:
	case in.kernel.product != nil:
		x.Row(x.Rows - 1) // panics where the data is too short
		in.setBF16x3(col, x)
	default:
		for i := range x.Rows {
			copy(in.data[i*in.cols+col:], x.Row(i))
		}
	}
	return in
}
