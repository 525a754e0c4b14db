package simd

// Linear is a linear layer, x·wᵀ + bias, with the weights in the form in which
// its kernel multiplies fastest. It is read-only and safe for concurrent use.
type Linear struct {
	kernel      *Kernel
	depth, cols int
	floats      *Matrix // nil where the weights are in thirds
	thirds      []float32
	bias        []float32
}

// NewLinear makes a linear layer of layers with the same input, whose outputs
// stand side by side: each of ws has a row for every output. The bias is as
// long as there are outputs. The data of ws is not used afterwards.
func (k *Kernel) NewLinear(bias []float32, ws ...View) *Linear {
	l := &Linear{kernel: k, depth: ws[0].Cols, cols: len(bias)}
	w := ws[0]
	if len(ws) > 1 {
		w = stack(ws)
	}
	if w.Rows != l.cols {
		panic("simd: bias and matrix differ in size")
	}
	if k.product == nil {
		l.floats = k.NewMatrix().PackRows(w, bias)
	} else {
		l.packThirds(w, bias)
	}
	return l
}

// stack returns one matrix of the rows of several.
func stack(ws []View) View {
	all := View{Cols: ws[0].Cols, Stride: ws[0].Cols}
	for _, w := range ws {
		if w.Cols != all.Cols {
			panic("simd: matrices side by side differ in size")
		}
		for i := range w.Rows {
			all.Data = append(all.Data, w.Row(i)...)
		}
		all.Rows += w.Rows
	}
	return all
}

// Mul sets dst to x·wᵀ + bias. dst is x.Rows by the outputs; it must not overlap
// x. Wrong shapes panic.
func (l *Linear) Mul(dst, x View, s *Scratch) { l.mul(dst, x, s, nil) }

// MulGELU is Mul of GELU(x). It changes x, some of it perhaps not.
func (l *Linear) MulGELU(dst, x View, s *Scratch) { l.mul(dst, x, s, l.kernel.GELU) }

func (l *Linear) mul(dst, x View, s *Scratch, prepare func([]float32)) {
	switch {
	case nothingIn(dst, x, l.depth, l.cols):
	case l.floats != nil:
		for i := 0; i < x.Rows && prepare != nil; i++ {
			prepare(x.Row(i))
		}
		l.floats.Mul(dst, x, s)
	default:
		l.mulThirds(dst, x, s, prepare)
	}
}
