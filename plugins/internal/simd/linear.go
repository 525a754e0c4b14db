package simd

// Linear is a linear layer, x·wᵀ + bias, with the weights in the form in which
// its kernel multiplies fastest. It is read-only and safe for concurrent use.
type Linear struct {
	kernel      *Kernel
	depth, cols int
	floats      *Matrix   // nil where the weights are bf16x3
	bf16x3      []float32 // panels of weights
	bias        []float32
}

// NewLinear makes a layer of weights, a row for every output, and a bias for each
// of these. The data of w is not used afterwards.
func (k *Kernel) NewLinear(w View, bias []float32) *Linear {
	if len(bias) != w.Rows {
		panic("simd: bias and matrix differ in size")
	}
	l := &Linear{kernel: k, depth: w.Cols, cols: w.Rows}
	if k.product == nil {
		l.floats = k.NewMatrix().PackRows(w, bias)
	} else {
		l.packBF16x3(w, bias)
	}
	return l
}

// Slice returns how many inputs of a layer [Linear.Add] should take at a time:
// as many as stay in the second-level cache, or all.
func (l *Linear) Slice() int {
	if l.floats != nil {
		return l.depth
	}
	return sliceCols
}

// sliceCols keeps 256 rows of a bf16x3 input below 600 kB.
const sliceCols = 384

// Mul sets dst to the outputs of the layer from col on, a multiple of
// [PanelCols], as many as dst has columns. Wrong shapes panic.
func (l *Linear) Mul(dst View, in *Input, col int) {
	if in.cols != l.depth {
		panic("simd: shapes of a product do not fit")
	}
	l.mul(dst, in, col, 0)
}

// Add adds to dst the products of the inputs that in holds, which are those of
// the layer from first on. Where first is 0 it sets dst to these and the bias.
// Inputs are added in slices of [Linear.Slice], of which the last may be smaller.
func (l *Linear) Add(dst View, in *Input, first int) {
	slice := l.Slice()
	if first%slice != 0 || in.cols != min(slice, l.depth-first) || dst.Cols != l.cols {
		panic("simd: shapes of a product do not fit")
	}
	l.mul(dst, in, 0, first)
}

func (l *Linear) mul(dst View, in *Input, col, first int) {
	if dst.Rows != in.rows || col%PanelCols != 0 || col+dst.Cols > l.cols || dst.Cols%PanelCols != 0 && col+dst.Cols < l.cols {
		panic("simd: shapes of a product do not fit")
	}
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	dst.Row(dst.Rows - 1) // panics where the data is too short
	if l.floats == nil {
		l.mulBF16x3(dst, in, col, first)
		return
	}
	l.floats.part(col, dst.Cols).Mul(dst, NewView(in.data, in.rows, in.cols), &in.scratch)
}
