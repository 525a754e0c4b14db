package transformer

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/simd"
)

const (
	// keyBlock is what the number of keys of a text is rounded up to.
	keyBlock = simd.ExpCols
	// maxScores bounds the scores of one head that exist at a time: 1 MB.
	maxScores = 256 << 10
	// minRows is how many tokens are computed together at least.
	minRows = 12
)

// attention sets w.inner to the results of all heads, which are computed one by one where
// their width allows.
func (m *Model) attention(l *layer, batch []Text, x simd.View, w *Workspace) {
	w.input.Reset(x.Rows, m.Hidden).Smooth(l.smooth).Set(0, x)
	w.inner.Reset(x.Rows, m.Hidden)
	size := m.HeadSize()
	cols := size
	if size%linear.PanelCols != 0 {
		cols = m.Hidden
	}
	query, value := resize(&w.query, x.Rows, cols), resize(&w.value, x.Rows, cols)
	// Keys are transposed in whole blocks, which may extend beyond the last token; the
	// rows there do not count.
	key := resize(&w.key, x.Rows+keyBlock-1, cols)
	context := resize(&w.context, x.Rows, m.Hidden)
	for col := 0; col < m.Hidden; col += cols {
		l.query.Mul(query, w.input, col)
		l.key.Mul(part(key, 0, x.Rows, 0, cols), w.input, col)
		l.value.Mul(value, w.input, col)
		for at := 0; at < cols; at += size {
			h := head{
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
	w.inner.Set(0, context)
}

// head is one attention head: a row for each token of the batch.
type head struct {
	number, window             int
	query, key, value, context simd.View
}

// attend sets the head's context of the text that begins at row first and has n tokens:
// softmax(q·kᵀ/√size)·v. Queries go some rows at a time, against the keys that these see.
func (m *Model) attend(h head, first, n int, w *Workspace) {
	m.rotate(h, first, n)
	size := h.query.Cols
	rows, most := n, n // most: keys that such rows see
	if h.window > 0 {
		rows, most = 2*h.window, min(n, 4*h.window)
	}
	rows = max(min(rows, maxScores/(most+keyBlock)), minRows)
	packed := [2]int{-1} // the keys that are packed, the first one and the end
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

// see completes the scores of the token at a position, for the keys from low to high. What it
// does not see, and what stands for no key, gets a score too low to count.
func (m *Model) see(h head, scores []float32, position, low, high int) {
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

// rotate tells the head's queries and keys of a text their positions, where the model does it
// so.
func (m *Model) rotate(h head, first, n int) {
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
