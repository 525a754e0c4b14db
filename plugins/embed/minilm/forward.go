package minilm

import (
	"math"
	"runtime"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// workspace is the memory of one forward pass, reused by the next. All matrices
// but scores have a row for each token of the batch, text after text without
// padding.
type workspace struct {
	x       []float32 // the hidden states
	qkv     []float32 // queries, keys and values side by side
	context []float32 // what attention gathered
	change  []float32 // what a sublayer adds to x
	wide    []float32 // inside the feed-forward sublayer
	scores  []float32 // of one head and one text: tokens by tokens

	keys, values *simd.Matrix
	scratch      simd.Scratch
}

func newWorkspace(k *simd.Kernel) *workspace {
	return &workspace{keys: k.NewMatrix(), values: k.NewMatrix()}
}

// resize returns rows by cols over *buffer, which grows where it is too small.
func resize(buffer *[]float32, rows, cols int) simd.View {
	if cap(*buffer) < rows*cols {
		*buffer = make([]float32, rows*cols)
	}
	return simd.NewView((*buffer)[:rows*cols], rows, cols)
}

// forward fills in the vectors of a batch.
func (e *encoder) forward(batch []job, w *workspace) {
	tokens := 0
	for _, j := range batch {
		tokens += len(j.tokens)
	}
	x := resize(&w.x, tokens, e.Hidden)
	e.embed(batch, x)
	context := resize(&w.context, tokens, e.Hidden)
	change := resize(&w.change, tokens, e.Hidden)
	for i := range e.layers {
		l := &e.layers[i]
		// Keys are transposed in whole blocks, which may reach beyond the
		// last token: what is there does not count.
		qkv := resize(&w.qkv, tokens+keyBlock-1, 3*e.Hidden)
		l.queryKeyValue.Mul(part(qkv, 0, tokens, 0, 3*e.Hidden), x, &w.scratch)
		e.attend(batch, qkv, context, w)
		l.attended.Mul(change, context, &w.scratch)
		l.afterAttention.add(x, change)
		wide := resize(&w.wide, tokens, e.Intermediate)
		l.wide.Mul(wide, x, &w.scratch)
		l.narrow.MulGELU(change, wide, &w.scratch)
		l.afterFeedForward.add(x, change)
	}
	e.pool(batch, x)
}

// embed sets x to the normalised sum of word, position and segment embeddings.
func (e *encoder) embed(batch []job, x simd.View) {
	row := 0
	for _, j := range batch {
		for position, id := range j.tokens {
			out := x.Row(row)
			copy(out, e.words[int(id)*e.Hidden:])
			e.embedded.apply(out, e.positions[position*e.Hidden:][:e.Hidden])
			row++
		}
	}
	runtime.KeepAlive(e.file)
}

// keyBlock is what the number of keys of a text is rounded up to.
const keyBlock = 16

// attend sets context to what every head gathers within each text:
// softmax(q·kᵀ/√size)·v.
func (e *encoder) attend(batch []job, qkv, context simd.View, w *workspace) {
	size := e.Hidden / e.Heads
	scale := float32(1 / math.Sqrt(float64(size)))
	first := 0
	for _, j := range batch {
		n := len(j.tokens)
		keys := (n + keyBlock - 1) / keyBlock * keyBlock
		scores := resize(&w.scores, n, keys)
		for head := range e.Heads {
			at := head * size
			w.keys.PackRows(part(qkv, first, keys, e.Hidden+at, size), nil)
			w.keys.Mul(scores, part(qkv, first, n, at, size), &w.scratch)
			for i := range n {
				row := scores.Row(i)
				for j := n; j < keys; j++ {
					row[j] = -math.MaxFloat32 // too little to count
				}
				e.kernel.Softmax(row, scale)
			}
			w.values.PackCols(part(qkv, first, n, 2*e.Hidden+at, size))
			w.values.Mul(part(context, first, n, at, size), part(scores, 0, n, 0, n), &w.scratch)
		}
		first += n
	}
}

// part returns the given rows and columns of v.
func part(v simd.View, row, rows, col, cols int) simd.View {
	return simd.View{Data: v.Data[row*v.Stride+col:], Rows: rows, Cols: cols, Stride: v.Stride}
}

// pool sets each job's vector to the mean of its tokens, or to [CLS].
func (e *encoder) pool(batch []job, x simd.View) {
	row := 0
	for _, j := range batch {
		n := 1
		if e.MeanPooling {
			n = len(j.tokens)
		}
		for t := range n {
			for i, v := range x.Row(row + t) {
				j.vector[i] += v
			}
		}
		factor := 1 / float32(n)
		if e.Normalize {
			length := math.Sqrt(float64(e.kernel.Dot(j.vector, j.vector)))
			factor = float32(1 / max(length, 1e-12))
		}
		for i := range j.vector {
			j.vector[i] *= factor
		}
		row += len(j.tokens)
	}
}
