package linear

import "github.com/racflow/racflow/plugins/internal/simd"

// Layer is a linear layer, x·wᵀ + bias, with the weights in the form in which
// its kernel multiplies fastest. It is read-only and safe for concurrent use.
type Layer struct {
	kernel      *simd.Kernel
	depth, cols int
	bias        []float32 // of whole panels

	// One of these three holds the weights.
	floats *simd.Matrix
	bf16x3 []float32 // panels
	packed *packedWeights
}

// New makes a layer of weights, a row for every output, and a bias for each
// of these. The data of w is not used afterwards.
func New(k *simd.Kernel, p Precision, w simd.View, bias []float32) *Layer {
	return NewSmooth(k, p, w, bias, nil)
}

// NewSmooth makes a layer like [New] whose inputs are smoothed by s.
func NewSmooth(k *simd.Kernel, p Precision, w simd.View, bias []float32, s *Smoothing) *Layer {
	if s != nil && (p != Int8 || len(s.weights) != w.Cols) {
		panic("linear: smoothing does not fit the layer")
	}
	if p != Float32 {
		return newPacked(k, unitFor(k, p), w, bias, s)
	}
	l := newLayer(k, w, bias)
	if hasTiles(k) {
		l.packBF16x3(w)
	} else {
		l.floats = k.NewMatrix().PackRows(w, bias)
	}
	return l
}

// newPacked makes a layer for a unit.
func newPacked(k *simd.Kernel, u *unit, w simd.View, bias []float32, s *Smoothing) *Layer {
	l := newLayer(k, w, bias)
	l.packed = u.pack(k, w, s, equalSlice(l.depth))
	return l
}

func newLayer(k *simd.Kernel, w simd.View, bias []float32) *Layer {
	if len(bias) != w.Rows {
		panic("linear: bias and matrix differ in size")
	}
	l := &Layer{kernel: k, depth: w.Cols, cols: w.Rows}
	l.bias = make([]float32, roundUp(l.cols, PanelCols))
	copy(l.bias, bias)
	return l
}

// Slice returns how many inputs of a layer [Layer.Add] should take at a time:
// as many as stay in the second-level cache, and for int8 as share a scale; or all.
func (l *Layer) Slice() int {
	switch {
	case l.floats != nil, l.packed != nil:
		return equalSlice(l.depth)
	}
	return sliceCols
}

const (
	// sliceCols keeps 256 rows of a bf16x3 input below 600 kB.
	sliceCols = 384
	// maxSlice keeps the floats that 512 rows of it are made of within the cache.
	maxSlice = 512
)

// equalSlice cuts a depth into equal slices.
func equalSlice(depth int) int {
	slices := (depth + maxSlice - 1) / maxSlice
	return paddedTerms((depth + slices - 1) / slices)
}

// Mul sets dst to the outputs of the layer from col on, a multiple of
// [PanelCols], as many as dst has columns. Wrong shapes panic.
func (l *Layer) Mul(dst simd.View, in *Input, col int) {
	if in.cols != l.depth {
		panic("linear: shapes of a product do not fit")
	}
	l.mul(dst, in, col, 0)
}

// Add adds to dst the products of the inputs that in holds, which are those of
// the layer from first on. Where first is 0 it sets dst to these and the bias.
// Inputs are added in slices of [Layer.Slice], of which the last may be smaller.
func (l *Layer) Add(dst simd.View, in *Input, first int) {
	slice := l.Slice()
	if first%slice != 0 || in.cols != min(slice, l.depth-first) || dst.Cols != l.cols {
		panic("linear: shapes of a product do not fit")
	}
	l.mul(dst, in, 0, first)
}

func (l *Layer) mul(dst simd.View, in *Input, col, first int) {
	if dst.Rows != in.rows || col%PanelCols != 0 || col+dst.Cols > l.cols || dst.Cols%PanelCols != 0 && col+dst.Cols < l.cols {
		panic("linear: shapes of a product do not fit")
	}
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	dst.Row(dst.Rows - 1) // panics where the data is too short
	switch {
	case l.packed != nil:
		l.mulPacked(dst, in, col, first)
	case l.floats != nil:
		l.mulFloats(dst, in, col, first)
	default:
		l.mulBF16x3(dst, in, col, first)
	}
}

// mulFloats computes the outputs from col on, with the inputs from first on: a panel at a
// time where they are added to others.
func (l *Layer) mulFloats(dst simd.View, in *Input, col, first int) {
	x := simd.NewView(in.data, in.rows, in.cols)
	if first == 0 {
		l.floats.Part(0, in.cols, col, dst.Cols).Mul(dst, x, &in.scratch)
		return
	}
	in.tile = grow(in.tile, dst.Rows*PanelCols)
	for c := 0; c < dst.Cols; c += PanelCols {
		cols := min(PanelCols, dst.Cols-c)
		sums := simd.NewView(in.tile[:dst.Rows*cols], dst.Rows, cols)
		l.floats.Part(first, in.cols, col+c, cols).Mul(sums, x, &in.scratch)
		for i := range dst.Rows {
			l.kernel.Add(dst.Row(i)[c:][:cols], sums.Row(i))
		}
	}
}
