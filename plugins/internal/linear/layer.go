package linear

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// Layer is a linear layer, x·wᵀ + bias, with its weights in the order that its kernel multiplies fastest. It is
// read-only and safe for concurrent use.
type Layer struct {
	kernel      *simd.Kernel
	depth, cols int
	bias        []float32 // int8: padded to whole panels

	// Exactly one of these holds the weights.
	floats *simd.Matrix
	packed *packedWeights // int8
}

// PanelCols is the number of columns that [Layer] and [Input] process together. Column ranges begin at multiples of
// it.
const PanelCols = simd.PanelCols

// Input is the left-hand side of products with layers of one precision, in the order that its kernel multiplies
// fastest. One goroutine at a time may use it.
type Input struct {
	unit       *unit // int8 only
	rows, cols int

	x       simd.View // float32 only
	tile    []float32 // buffer for panels that extend beyond the result
	scratch simd.Scratch

	packed     []byte // int8: rows of bytes or of 16-bit words
	scale, low []float32
	smoothed   []float32 // one row
	product    product
}

// NewInput returns an empty input for layers that [New] creates with the same kernel and precision.
func NewInput(k *simd.Kernel, p Precision) *Input {
	in := &Input{}
	if p == Int8 {
		in.unit = unitFor(k)
	}
	return in
}

// Set makes the rows of x the input for layers that were created with s. In float32, x must not change until the
// products are computed. Wrong shapes panic.
func (in *Input) Set(x simd.View, s *Smoothing) *Input {
	if s != nil && (in.unit == nil || len(s.input) != x.Cols) {
		panic("linear: smoothing does not fit the input")
	}
	if x.Rows > 0 {
		x.Row(x.Rows - 1) // panics if the data is too short
	}
	in.rows, in.cols = x.Rows, x.Cols
	if in.unit != nil {
		in.quantise(x, s)
	} else {
		in.x = x
	}
	return in
}

// grow returns a slice of n floats: s itself if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// New creates a layer from weights, a row for every output, and a bias for each output. s smooths the inputs. The
// layer does not use the data of w afterwards.
func New(k *simd.Kernel, p Precision, w simd.View, bias []float32, s *Smoothing) *Layer {
	if s != nil && (p != Int8 || len(s.weights) != w.Cols) {
		panic("linear: smoothing does not fit the layer")
	}
	if len(bias) != w.Rows {
		panic("linear: bias and matrix differ in size")
	}
	l := &Layer{kernel: k, depth: w.Cols, cols: w.Rows}
	if p == Int8 {
		l.bias = make([]float32, roundUp(l.cols, PanelCols))
		copy(l.bias, bias)
		l.packed = unitFor(k).pack(k, w, s, l.Slice())
	} else {
		l.floats = k.NewMatrix().PackRows(w, bias)
	}
	return l
}

// Slice returns how many inputs of a layer [Layer.Add] should process at a time: as many as stay in the second-level
// cache and, for int8, share a scale; or all of them.
func (l *Layer) Slice() int {
	slices := (l.depth + maxSlice - 1) / maxSlice
	return paddedTerms((l.depth + slices - 1) / slices)
}

// maxSlice is the slice size at which the floats of 512 rows stay in the cache.
const maxSlice = 512

// Mul sets dst to the outputs of the layer from col on, a multiple of [PanelCols]. It computes as many outputs as dst
// has columns. Wrong shapes panic.
func (l *Layer) Mul(dst simd.View, in *Input, col int) {
	if in.cols != l.depth {
		panic("linear: shapes of a product do not fit")
	}
	l.mul(dst, in, col, 0)
}

// Add adds to dst the products of the layer's inputs from first on, which in holds. If first is 0, it sets dst to the
// products plus the bias. Inputs are added in slices of [Layer.Slice]; the last slice may be smaller.
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
	dst.Row(dst.Rows - 1) // panics if the data is too short
	if l.packed != nil {
		l.mulPacked(dst, in, col, first)
	} else {
		l.mulFloats(dst, in, col, first)
	}
}

// mulFloats computes the outputs from col on, with the inputs from first on. If they are added to earlier ones, it
// processes one panel at a time.
func (l *Layer) mulFloats(dst simd.View, in *Input, col, first int) {
	if first == 0 {
		l.floats.Part(0, in.cols, col, dst.Cols).Mul(dst, in.x, &in.scratch)
		return
	}
	in.tile = grow(in.tile, dst.Rows*PanelCols)
	for c := 0; c < dst.Cols; c += PanelCols {
		cols := min(PanelCols, dst.Cols-c)
		sums := simd.NewView(in.tile[:dst.Rows*cols], dst.Rows, cols)
		l.floats.Part(first, in.cols, col+c, cols).Mul(sums, in.x, &in.scratch)
		for i := range dst.Rows {
			l.kernel.Add(dst.Row(i)[c:][:cols], sums.Row(i))
		}
	}
}

// Smoothing moves range from inputs to weights before both are rounded to int8. Terms of an input that are often
// large are divided by a factor, and their weights are multiplied by it, so that products stay the same (SmoothQuant,
// Xiao et al. 2022, arXiv:2211.10438). A nil Smoothing changes nothing.
type Smoothing struct{ input, weights []float32 }

// Smooth returns the smoothing for layers whose input is the output of a layer norm. w are the weights of the layer
// that loses most by rounding. Ranges are not measured on texts: an output of a layer norm with gain g and bias b is
// nearly always within 3|g|+|b|. A nil bias is zero. The result is nil for precisions other than [Int8].
func Smooth(p Precision, gain, bias []float32, w simd.View) *Smoothing {
	if len(gain) != w.Cols || bias != nil && len(bias) != w.Cols {
		panic("linear: layer norm and matrix differ in size")
	}
	if p != Int8 {
		return nil
	}
	tops := make([]float32, w.Cols)
	for i := range w.Rows {
		for j, v := range w.Row(i) {
			tops[j] = max(tops[j], v, -v)
		}
	}
	// Another layer after the norm may depend on a term that this one hardly uses. So the factors of terms must not
	// differ without bound.
	const spread, least = 32, 1e-6
	lowest := least
	for _, top := range tops {
		lowest = max(lowest, float64(top)/spread)
	}
	s := &Smoothing{make([]float32, w.Cols), make([]float32, w.Cols)}
	for j, top := range tops {
		reach := 3 * math.Abs(float64(gain[j]))
		if bias != nil {
			reach += math.Abs(float64(bias[j]))
		}
		factor := math.Sqrt(max(reach, least) / max(float64(top), lowest))
		s.input[j], s.weights[j] = float32(1/factor), float32(factor)
	}
	return s
}

// apply writes the smoothed weights of an output.
func (s *Smoothing) apply(dst, weights []float32) []float32 {
	if s == nil {
		return weights
	}
	for j, v := range weights {
		dst[j] = v * s.weights[j]
	}
	return dst
}
