package transformer

import (
	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// Text is the tokens of a text, or of a pair of texts.
type Text struct {
	Tokens []int32
	Second int // from which token on they are of the second text of a pair; their number where there is none
}

// Workspace is the memory of one forward pass, reused by the next. All matrices but
// scores have a row for each token of the batch, text after text without padding. Wide
// ones never exist as a whole: some columns at a time are computed and packed into
// input, the left-hand side of the next product.
type Workspace struct {
	x       []float32 // the hidden states
	normed  []float32 // these as a sublayer of ModernBERT reads them
	query   []float32 // of one head, or of all heads, as key and value
	key     []float32
	value   []float32
	context []float32 // the results of attention, of all heads
	change  []float32 // what a sublayer adds to x
	wide    []float32 // some columns inside the feed-forward sublayer
	gate    []float32
	scores  []float32 // of one head and some tokens of one text: by the tokens that these see
	sums    []float32 // of their rows
	zero    []float32

	input, inner *linear.Input
	keys, values *simd.Matrix
	scratch      simd.Scratch
}

// NewWorkspace returns the memory for one goroutine.
func (m *Model) NewWorkspace() *Workspace {
	k, p := m.kernel, m.precision
	return &Workspace{
		input: linear.NewInput(k, p), inner: linear.NewInput(k, p), keys: k.NewMatrix(), values: k.NewMatrix(),
		zero: make([]float32, m.Hidden),
	}
}

// resize returns rows by cols over *buffer, which grows where it is too small.
func resize(buffer *[]float32, rows, cols int) simd.View {
	if cap(*buffer) < rows*cols {
		*buffer = make([]float32, rows*cols)
	}
	return simd.NewView((*buffer)[:rows*cols], rows, cols)
}

// part returns the given rows and columns of v.
func part(v simd.View, row, rows, col, cols int) simd.View {
	return simd.View{Data: v.Data[row*v.Stride+col:], Rows: rows, Cols: cols, Stride: v.Stride}
}

// Forward returns the hidden states of a batch, a row for each token, text after text.
// Texts have a token at least, and MaxTokens at most. The result is valid until w is
// used again.
func (m *Model) Forward(batch []Text, w *Workspace) simd.View {
	tokens := 0
	for _, t := range batch {
		tokens += len(t.Tokens)
	}
	x := resize(&w.x, tokens, m.Hidden)
	m.embed(batch, x, w)
	change := resize(&w.change, tokens, m.Hidden)
	for i := range m.layers {
		l := &m.layers[i]
		m.attention(l, batch, m.normed(l.beforeAttention, x, w), w)
		l.attended.Mul(change, w.inner, 0)
		merge(l.afterAttention, x, change)
		m.feedForward(l, m.normed(l.beforeFeedForward, x, w), change, w)
		merge(l.afterFeedForward, x, change)
	}
	if m.final != nil {
		m.final.of(x, x, w.zero)
	}
	return x
}

// normed returns what a sublayer reads: x, or where it has a norm of its own, x normalised.
func (m *Model) normed(n *Norm, x simd.View, w *Workspace) simd.View {
	if n == nil {
		return x
	}
	normed := resize(&w.normed, x.Rows, x.Cols)
	n.of(normed, x, w.zero)
	return normed
}

// merge adds change to x, and normalises the sum where there is a norm.
func merge(n *Norm, x, change simd.View) {
	if n != nil {
		n.add(x, change)
		return
	}
	for i := range x.Rows {
		row := x.Row(i)
		for j, v := range change.Row(i) {
			row[j] += v
		}
	}
}

// feedForward sets change to narrow(GELU(wide(x))), or where there is a gate to
// narrow(GELU(wide(x)) · gate(x)) (Shazeer 2020, arXiv:2002.05202).
func (m *Model) feedForward(l *layer, x, change simd.View, w *Workspace) {
	w.input.Reset(x.Rows, m.Hidden).Smooth(l.smoothWide).Set(0, x)
	slice := l.narrow.Slice()
	for first := 0; first < m.Intermediate; first += slice {
		end := min(first+slice, m.Intermediate)
		w.inner.Reset(x.Rows, end-first)
		step := w.inner.Step()
		for col := first; col < end; col += step {
			cols := min(step, end-col)
			wide := resize(&w.wide, x.Rows, cols)
			l.wide.Mul(wide, w.input, col)
			m.kernel.GELU(wide.Data)
			if l.gate != nil {
				gate := resize(&w.gate, x.Rows, cols)
				l.gate.Mul(gate, w.input, col)
				for i, g := range gate.Data {
					wide.Data[i] *= g
				}
			}
			w.inner.Set(col-first, wide)
		}
		l.narrow.Add(change, w.inner, first)
	}
}

// embed sets x to the normalised sum of word, position and segment embeddings.
func (m *Model) embed(batch []Text, x simd.View, w *Workspace) {
	row := 0
	for _, t := range batch {
		position := m.firstPosition()
		for i, id := range t.Tokens {
			out := x.Row(row)
			m.words.Read(out, int(id))
			m.embedded.apply(out, m.place(t, i, &position, w))
			row++
		}
	}
}

// place returns the embedding of the position and segment of token i, and moves position on.
func (m *Model) place(t Text, i int, position *int, w *Workspace) []float32 {
	if m.positions == nil {
		return w.zero
	}
	segment := 0
	if i >= t.Second {
		segment = len(m.positions) - 1
	}
	at := *position
	if first := m.firstPosition(); first > 0 && int(t.Tokens[i]) == first-1 {
		at = first - 1 // padding that was written out in the text
	} else {
		*position++
	}
	return m.positions[segment][at*m.Hidden:][:m.Hidden]
}
