package transformer

import (
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// Model is an encoder, ready to run. It is read-only and safe for concurrent use.
type Model struct {
	Config
	kernel    *simd.Kernel
	precision linear.Precision
	words     *safetensors.Table // a row for each token id
	positions [][]float32        // by segment: a row for each position, the segment's embedding included
	embedded  *Norm
	layers    []layer
	final     *Norm       // ModernBERT
	rotations *rotations  // ModernBERT
	relative  [][]float32 // MPNet: by head, what relativeBias reads
}

// layer is one transformer layer. Matrices are named for their results.
type layer struct {
	window            int           // how far a token sees, 0: all
	query, key, value *linear.Layer // Hidden from Hidden
	attended          *linear.Layer // Hidden from Hidden
	wide, gate        *linear.Layer // Intermediate from Hidden; only ModernBERT has a gate
	narrow            *linear.Layer // Hidden from Intermediate

	smooth, smoothWide *linear.Smoothing // of the input of query, key and value, and of wide and gate

	// Norms of the sum after a sublayer, or of its input. The first layer of ModernBERT
	// has none before attention.
	afterAttention, afterFeedForward   *Norm
	beforeAttention, beforeFeedForward *Norm
}

// New reads a model for a vocabulary of the given size. Every shape is checked
// before memory is taken for it.
func New(c Config, vocabulary int, r *Reader) (*Model, error) {
	n := familyNames[c.Family]
	r.findPrefix(n.words + ".weight")
	m := &Model{Config: c, kernel: r.kernel, precision: r.precision}
	if r.err == nil {
		m.words, r.err = r.weights.Table(r.prefix+n.words+".weight", c.Hidden)
	}
	if r.err == nil && m.words.Rows < vocabulary {
		r.err = fmt.Errorf("%s: tensor %q: embeddings for %d tokens, but the vocabulary has %d: the files are of different models",
			r.weights.Name(), r.prefix+n.words+".weight", m.words.Rows, vocabulary)
	}
	modern := c.Family == ModernBERT
	m.embedded = r.Norm(r.prefix+n.embedded, c.Hidden, c.Epsilon, modern)
	if n.positions != "" {
		m.readPositions(r, n)
	}
	input := m.embedded // the norm that a layer's input comes from
	for i := 0; i < c.Layers && r.err == nil; i++ {
		l := r.layer(i, n, c, input)
		input = l.afterFeedForward
		m.layers = append(m.layers, l)
	}
	if n.relative != "" {
		m.readRelative(r, n)
	}
	if modern && r.err == nil {
		m.final = r.Norm(r.prefix+n.final, c.Hidden, c.Epsilon, true)
		m.rotations = newRotations(c)
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// readPositions adds the embeddings of segments to those of positions.
func (m *Model) readPositions(r *Reader, n names) {
	positions := slices.Clone(r.read(r.prefix+n.positions+".weight", m.Positions, m.Hidden))
	if n.segments == "" {
		m.positions = [][]float32{positions}
		return
	}
	segments := r.read(r.prefix+n.segments+".weight", safetensors.AnyRows, m.Hidden)
	if r.err == nil && len(segments) == 0 {
		r.fail(fmt.Errorf("%s: tensor %q: shape [0 %d] has nothing in it", r.weights.Name(), r.prefix+n.segments+".weight", m.Hidden))
	}
	// Texts are of the first segment, and what follows a query of the second, if there is one.
	for start := 0; start < min(len(segments), 2*m.Hidden); start += m.Hidden {
		sum := positions
		if start+m.Hidden < min(len(segments), 2*m.Hidden) {
			sum = slices.Clone(positions)
		}
		for i := range sum {
			sum[i] += segments[start+i%m.Hidden]
		}
		m.positions = append(m.positions, sum)
	}
}

// layer reads a layer; input is the norm that its input comes from.
func (r *Reader) layer(i int, n names, c Config, input *Norm) layer {
	p := r.prefix + fmt.Sprintf(n.layer, i)
	if c.Family == ModernBERT {
		return r.modernLayer(i, p, n, c, input)
	}
	l := layer{
		attended:         r.linear(p+n.attended, c.Hidden, c.Hidden, false, nil),
		narrow:           r.linear(p+n.narrow, c.Intermediate, c.Hidden, false, nil),
		afterAttention:   r.Norm(p+n.afterAttention, c.Hidden, c.Epsilon, false),
		afterFeedForward: r.Norm(p+n.afterFeedForward, c.Hidden, c.Epsilon, false),
	}
	// Of the three that share an input, value loses most.
	l.smooth = r.smoothing(input, p+n.value, c.Hidden, c.Hidden, 0)
	l.query = r.linear(p+n.query, c.Hidden, c.Hidden, false, l.smooth)
	l.key = r.linear(p+n.key, c.Hidden, c.Hidden, false, l.smooth)
	l.value = r.linear(p+n.value, c.Hidden, c.Hidden, false, l.smooth)
	l.smoothWide = r.smoothing(l.afterAttention, p+n.wide, c.Hidden, c.Intermediate, 0)
	l.wide = r.linear(p+n.wide, c.Hidden, c.Intermediate, false, l.smoothWide)
	return l
}

func (r *Reader) modernLayer(i int, p string, n names, c Config, input *Norm) layer {
	l := layer{
		window:            c.window(i),
		attended:          r.linear(p+n.attended, c.Hidden, c.Hidden, true, nil),
		narrow:            r.linear(p+n.narrow, c.Intermediate, c.Hidden, true, nil),
		beforeFeedForward: r.Norm(p+n.beforeFeedForward, c.Hidden, c.Epsilon, true),
	}
	if i > 0 {
		l.beforeAttention = r.Norm(p+n.beforeAttention, c.Hidden, c.Epsilon, true)
		input = l.beforeAttention
	}
	l.smooth = r.smoothing(input, p+n.queryKeyValue, c.Hidden, 3*c.Hidden, 2*c.Hidden)
	attention := r.parts(p+n.queryKeyValue, c.Hidden, c.Hidden, 3, true, l.smooth)
	l.query, l.key, l.value = attention[0], attention[1], attention[2]
	l.smoothWide = r.smoothing(l.beforeFeedForward, p+n.wideAndGate, c.Hidden, 2*c.Intermediate, 0)
	wide := r.parts(p+n.wideAndGate, c.Hidden, c.Intermediate, 2, true, l.smoothWide)
	l.wide, l.gate = wide[0], wide[1]
	return l
}
