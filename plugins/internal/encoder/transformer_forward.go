package encoder

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/simd"
)

const (
	// keyBlock is the block size to which the number of a text's keys is rounded up.
	keyBlock = simd.ExpCols
	// maxScores bounds the number of scores of one head in memory: 1 MB.
	maxScores = 256 << 10
	// minRows is the least number of tokens that are computed together.
	minRows = 12
)

// attention sets w.inner to the results of all heads. Heads are computed one by one if their width allows.
func (m *model) attention(l *layer, batch []text, x simd.View, w *workspace) {
	w.input.Set(x, l.smooth)
	size := m.headSize()
	cols := size
	if size%linear.PanelCols != 0 {
		cols = m.Hidden
	}
	query, value := resize(&w.query, x.Rows, cols), resize(&w.value, x.Rows, cols)
	// Keys are transposed in whole blocks, which may extend beyond the last token. The extra rows do not count.
	key := resize(&w.key, x.Rows+keyBlock-1, cols)
	context := resize(&w.context, x.Rows, m.Hidden)
	for col := 0; col < m.Hidden; col += cols {
		l.query.Mul(query, w.input, col)
		l.key.Mul(part(key, 0, x.Rows, 0, cols), w.input, col)
		l.value.Mul(value, w.input, col)
		for at := 0; at < cols; at += size {
			h := transformerHead{
				number: (col + at) / size, window: l.window,
				query: part(query, 0, x.Rows, at, size), key: part(key, 0, key.Rows, at, size),
				value: part(value, 0, x.Rows, at, size), context: part(context, 0, x.Rows, col+at, size),
			}
			first := 0
			for _, t := range batch {
				m.attend(h, first, len(t.Tokens), w)
				first += len(t.Tokens)
			}
		}
	}
	w.inner.Set(context, nil)
}

// transformerHead is one attention head: a row for each token of the batch.
type transformerHead struct {
	number, window             int
	query, key, value, context simd.View
}

// attend sets the head's context for the text of n tokens that begins at row first: softmax(q·kᵀ/√size)·v. It
// processes some queries at a time, with the keys that they attend to.
func (m *model) attend(h transformerHead, first, n int, w *workspace) {
	m.rotate(h, first, n)
	size := h.query.Cols
	rows, most := n, n // most: the number of keys that these rows attend to
	if h.window > 0 {
		rows, most = 2*h.window, min(n, 4*h.window)
	}
	rows = max(min(rows, maxScores/(most+keyBlock)), minRows)
	packed := [2]int{-1} // the range of packed keys
	for top := 0; top < n; top += rows {
		end := min(top+rows, n)
		low, high := 0, n
		if h.window > 0 {
			low, high = max(top-h.window, 0), min(end+h.window, n)
		}
		keys := (high - low + keyBlock - 1) / keyBlock * keyBlock
		scores := resize(&w.scores, end-top, keys)
		if seen := [2]int{low, high}; packed != seen {
			w.keys.PackRows(part(h.key, first+low, keys, 0, size), nil)
			w.values.PackCols(part(h.value, first+low, high-low, 0, size))
			packed = seen
		}
		w.keys.Mul(scores, part(h.query, first+top, end-top, 0, size), &w.scratch)
		for i := range end - top {
			m.see(h, scores.Row(i), top+i, low, high)
		}
		sums := resize(&w.sums, 1, end-top).Data
		m.kernel.ExpRows(scores, float32(1/math.Sqrt(float64(size))), sums)
		context := part(h.context, first+top, end-top, 0, size)
		w.values.Mul(context, part(scores, 0, end-top, 0, high-low), &w.scratch)
		for i, sum := range sums {
			m.kernel.Scale(context.Row(i), 1/sum)
		}
	}
}

// see completes the scores of the token at a position, for the keys from low to high. Keys outside the window, and
// padding, get a score too low to count.
func (m *model) see(h transformerHead, scores []float32, position, low, high int) {
	if m.relative != nil {
		for i, bias := range m.relativeBias(h.number, position, low)[:high-low] {
			scores[i] += bias
		}
	}
	begin, end := 0, high-low
	if h.window > 0 {
		begin, end = max(position-h.window-low, 0), min(position+h.window+1-low, end)
	}
	hide(scores[:begin])
	hide(scores[end:])
}

func hide(scores []float32) {
	for i := range scores {
		scores[i] = -math.MaxFloat32
	}
}

// rotate encodes positions in the head's queries and keys of a text, if the model uses rotations.
func (m *model) rotate(h transformerHead, first, n int) {
	if m.rotations == nil {
		return
	}
	table := m.rotations.global
	if h.window > 0 {
		table = m.rotations.local
	}
	for i := range n {
		rotate(h.query.Row(first+i), table, i)
		rotate(h.key.Row(first+i), table, i)
	}
}

// text is the tokens of a text, or of a pair of texts.
type text struct {
	Tokens []int32
	Second int // where the second text of a pair begins; without one, the number of tokens
}

// workspace is the memory of a forward pass; the next pass reuses it. All matrices but scores have a row for each
// token of the batch, text after text without padding. Wide matrices never exist as a whole: some columns are
// computed at a time, and are the left-hand side of the next product.
type workspace struct {
	x       []float32 // the hidden states
	normed  []float32 // the same, normalised for a sublayer of ModernBERT
	query   []float32 // of one head or of all heads, like key and value
	key     []float32
	value   []float32
	context []float32 // the result of attention, of all heads
	change  []float32 // what a sublayer adds to x
	wide    []float32 // some columns inside the feed-forward sublayer
	gate    []float32
	scores  []float32 // of one head and some tokens of a text: a column for each key
	sums    []float32 // sums of its rows
	zero    []float32

	input, inner *linear.Input
	keys, values *simd.Matrix
	scratch      simd.Scratch
}

// newWorkspace returns the memory for one goroutine.
func (m *model) newWorkspace() *workspace {
	k, p := m.kernel, m.precision
	return &workspace{
		input: linear.NewInput(k, p), inner: linear.NewInput(k, p), keys: k.NewMatrix(), values: k.NewMatrix(),
		zero: make([]float32, m.Hidden),
	}
}

// resize returns a rows by cols matrix over *buffer, and grows the buffer if it is too small.
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

// forward returns the hidden states of a batch, a row for each token, text after text. Each text has 1 to maxTokens
// tokens. The result is valid until w is used again.
func (m *model) forward(batch []text, w *workspace) simd.View {
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

// normed returns the input of a sublayer: x, or x normalised if the sublayer has its own norm.
func (m *model) normed(n *norm, x simd.View, w *workspace) simd.View {
	if n == nil {
		return x
	}
	normed := resize(&w.normed, x.Rows, x.Cols)
	n.of(normed, x, w.zero)
	return normed
}

// merge adds change to x, and normalises the sum if there is a norm.
func merge(n *norm, x, change simd.View) {
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

// feedForward sets change to narrow(GELU(wide(x))). With a gate it is narrow(GELU(wide(x)) · gate(x)) (Shazeer 2020,
// arXiv:2002.05202).
func (m *model) feedForward(l *layer, x, change simd.View, w *workspace) {
	w.input.Set(x, l.smoothWide)
	slice := l.narrow.Slice()
	for first := 0; first < m.Intermediate; first += slice {
		wide := resize(&w.wide, x.Rows, min(slice, m.Intermediate-first))
		l.wide.Mul(wide, w.input, first)
		m.kernel.GELU(wide.Data)
		if l.gate != nil {
			gate := resize(&w.gate, wide.Rows, wide.Cols)
			l.gate.Mul(gate, w.input, first)
			for i, g := range gate.Data {
				wide.Data[i] *= g
			}
		}
		l.narrow.Add(change, w.inner.Set(wide, nil), first)
	}
}

// embed sets x to the normalised sum of word, position and segment embeddings.
func (m *model) embed(batch []text, x simd.View, w *workspace) {
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

// place returns the embedding of the position and segment of token i, and advances position.
func (m *model) place(t text, i int, position *int, w *workspace) []float32 {
	if m.positions == nil {
		return w.zero
	}
	segment := 0
	if i >= t.Second {
		segment = len(m.positions) - 1
	}
	at := *position
	if first := m.firstPosition(); first > 0 && int(t.Tokens[i]) == first-1 {
		at = first - 1 // a padding token in the text
	} else {
		*position++
	}
	return m.positions[segment][at*m.Hidden:][:m.Hidden]
}

// norm holds the learned parameters for [simd.Kernel.AddNorm].
type norm struct {
	kernel     *simd.Kernel
	gain, bias []float32
	epsilon    float32
}

// add sets every row of x to the normalised sum of x and change.
func (n *norm) add(x, change simd.View) {
	for i := range x.Rows {
		n.apply(x.Row(i), change.Row(i))
	}
}

func (n *norm) apply(x, change []float32) {
	n.kernel.AddNorm(x, change, n.gain, n.bias, n.epsilon)
}

// Apply normalises x.
func (n *norm) Apply(x []float32) { n.apply(x, make([]float32, len(x))) }

// of sets every row of dst to the normalised row of x. zero contains as many zeros as a row has columns.
func (n *norm) of(dst, x simd.View, zero []float32) {
	for i := range x.Rows {
		row := dst.Row(i)
		copy(row, x.Row(i))
		n.apply(row, zero)
	}
}

// readRelative reads MPNet's biases of relative positions. The file has one for each head and bucket; the model gets
// one for each head and distance.
func (m *model) readRelative(r *reader, n names) {
	biases := r.read(r.prefix+n.relative+".weight", m.Buckets, m.Heads)
	if r.err != nil {
		return
	}
	tokens := m.maxTokens()
	// Scores are scaled after the bias is added, so undo the scale here.
	scale := math.Sqrt(float64(m.headSize()))
	for head := range m.Heads {
		row := make([]float32, 2*tokens-1)
		for i := range row {
			row[i] = float32(scale * float64(biases[bucket(i-(tokens-1), m.Buckets)*m.Heads+head]))
		}
		m.relative = append(m.relative, row)
	}
}

// relativeBias returns the biases for the scores of a query at a position, for the keys from first on.
func (m *model) relativeBias(head, position, first int) []float32 {
	return m.relative[head][first-position+m.maxTokens()-1:]
}

// bucket returns the bucket of a key that is distance after the query. Half of the buckets are for keys before the
// query, half for keys after it. In each half, the first half has one bucket per distance; the others cover ranges
// that grow up to a distance of 128 (Raffel et al. 2019, arXiv:1910.10683). The arithmetic is the original's, in
// float32.
func bucket(distance, buckets int) int {
	buckets /= 2
	first := 0
	if distance > 0 {
		first = buckets
	} else {
		distance = -distance
	}
	exact := buckets / 2
	if distance < exact {
		return first + distance
	}
	log := float32(math.Log(float64(float32(distance) / float32(exact))))
	large := log / float32(math.Log(128/float64(exact))) * float32(buckets-exact)
	return first + min(exact+int(large), buckets-1)
}

// rotations encode positions by rotating pairs of columns of queries and keys (Su et al. 2021, arXiv:2104.09864).
type rotations struct {
	global, local []float32 // a row for each position: cosines, then sines
}

func newRotations(c Config) *rotations {
	table := func(theta float64) []float32 {
		half := c.headSize() / 2
		values := make([]float32, 0, c.Positions*2*half)
		for position := range c.Positions {
			cosines, sines := make([]float32, half), make([]float32, half)
			for i := range half {
				frequency := 1 / float32(math.Pow(theta, float64(float32(2*i)/float32(2*half))))
				angle := float64(float32(position) * frequency)
				cosines[i], sines[i] = float32(math.Cos(angle)), float32(math.Sin(angle))
			}
			values = append(append(values, cosines...), sines...)
		}
		return values
	}
	return &rotations{global: table(c.GlobalTheta), local: table(c.LocalTheta)}
}

// rotate rotates a head of the token at a position: column i together with column i + half.
func rotate(head, table []float32, position int) {
	half := len(head) / 2
	row := table[position*2*half:][:2*half]
	cosines, sines := row[:half], row[half:]
	low, high := head[:half], head[half:][:half]
	for i, a := range low {
		b := high[i]
		low[i] = a*cosines[i] - b*sines[i]
		high[i] = b*cosines[i] + a*sines[i]
	}
}
