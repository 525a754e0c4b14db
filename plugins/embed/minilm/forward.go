package minilm

import (
	"math"
	"runtime"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// workspace is the memory of one forward pass, reused by the next. All matrices but
// scores have a row for each token of the batch, text after text without padding. Wide
// ones never exist as a whole: some columns at a time are computed and packed into
// input, the left-hand side of the next product.
type workspace struct {
	x       []float32 // the hidden states
	query   []float32 // of one head, or of all heads, as key, value and context
	key     []float32
	value   []float32
	context []float32 // the results of attention
	change  []float32 // what a sublayer adds to x
	wide    []float32 // some columns inside the feed-forward sublayer
	scores  []float32 // of one head and one text: tokens by tokens

	input, inner *simd.Input
	keys, values *simd.Matrix
	scratch      simd.Scratch
}

func newWorkspace(k *simd.Kernel) *workspace {
	return &workspace{input: k.NewInput(), inner: k.NewInput(), keys: k.NewMatrix(), values: k.NewMatrix()}
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
	change := resize(&w.change, tokens, e.Hidden)
	for i := range e.layers {
		l := &e.layers[i]
		e.attention(l, batch, x, w)
		l.attended.Mul(change, w.inner, 0)
		l.afterAttention.add(x, change)
		e.feedForward(l, x, change, w)
		l.afterFeedForward.add(x, change)
	}
	e.pool(batch, x)
}

// feedForward sets change to narrow(GELU(wide(x))).
func (e *encoder) feedForward(l *layer, x, change simd.View, w *workspace) {
	w.input.Reset(x.Rows, e.Hidden).Set(0, x)
	slice := l.narrow.Slice()
	for first := 0; first < e.Intermediate; first += slice {
		end := min(first+slice, e.Intermediate)
		w.inner.Reset(x.Rows, end-first)
		for col := first; col < end; col += simd.PanelCols {
			wide := resize(&w.wide, x.Rows, min(simd.PanelCols, end-col))
			l.wide.Mul(wide, w.input, col)
			e.kernel.GELU(wide.Data)
			w.inner.Set(col-first, wide)
		}
		l.narrow.Add(change, w.inner, first)
	}
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

// attention sets w.inner to the results of all heads, which are computed one by one where
// their width allows.
func (e *encoder) attention(l *layer, batch []job, x simd.View, w *workspace) {
	w.input.Reset(x.Rows, e.Hidden).Set(0, x)
	w.inner.Reset(x.Rows, e.Hidden)
	size := e.Hidden / e.Heads
	cols := size
	if size%simd.PanelCols != 0 {
		cols = e.Hidden
	}
	query, value := resize(&w.query, x.Rows, cols), resize(&w.value, x.Rows, cols)
	// Keys are transposed in whole blocks, which may extend beyond the last token; the
	// rows there do not count.
	key := resize(&w.key, x.Rows+keyBlock-1, cols)
	context := resize(&w.context, x.Rows, cols)
	for col := 0; col < e.Hidden; col += cols {
		l.query.Mul(query, w.input, col)
		l.key.Mul(part(key, 0, x.Rows, 0, cols), w.input, col)
		l.value.Mul(value, w.input, col)
		for at := 0; at < cols; at += size {
			e.attend(batch, part(query, 0, x.Rows, at, size), part(key, 0, key.Rows, at, size),
				part(value, 0, x.Rows, at, size), part(context, 0, x.Rows, at, size), w)
		}
		w.inner.Set(col, context)
	}
}

// attend sets context to the attention of one head within each text:
// softmax(q·kᵀ/√size)·v.
func (e *encoder) attend(batch []job, query, key, value, context simd.View, w *workspace) {
	size := query.Cols
	scale := float32(1 / math.Sqrt(float64(size)))
	first := 0
	for _, j := range batch {
		n := len(j.tokens)
		keys := (n + keyBlock - 1) / keyBlock * keyBlock
		scores := resize(&w.scores, n, keys)
		w.keys.PackRows(part(key, first, keys, 0, size), nil)
		w.keys.Mul(scores, part(query, first, n, 0, size), &w.scratch)
		for i := range n {
			row := scores.Row(i)
			for t := n; t < keys; t++ {
				row[t] = -math.MaxFloat32 // too little to count
			}
			e.kernel.Softmax(row, scale)
		}
		w.values.PackCols(part(value, first, n, 0, size))
		w.values.Mul(part(context, first, n, 0, size), part(scores, 0, n, 0, n), &w.scratch)
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
