package encoder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// This file computes the hidden states of encoders of the BERT family: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet
// and ModernBERT.
//
// They differ in how positions enter the model, where layers are normalised, one sublayer, and the names of their
// tensors. So there is one forward pass; [Config] and the table of names describe the differences. The texts of a
// batch pass through the layers as one matrix with a row for each token and no padding. Matrices wider than the
// hidden states are computed and used a few columns at a time. Attention is computed for some rows of a text at a
// time. So the memory for a text grows with its length, not with its square.
//
// This code reads no files but weights: folder.go reads the configuration. Pooling and heads are in network.go.

// Family is a model's architecture, named as in configurations (model_type).
type Family string

// The families.
const (
	bert       Family = "bert"        // Devlin et al. 2018, arXiv:1810.04805
	distilBERT Family = "distilbert"  // Sanh et al. 2019, arXiv:1910.01108
	RoBERTa    Family = "roberta"     // Liu et al. 2019, arXiv:1907.11692
	xlmRoBERTa Family = "xlm-roberta" // Conneau et al. 2019, arXiv:1911.02116
	MPNet      Family = "mpnet"       // Song et al. 2020, arXiv:2004.09297
	modernBERT Family = "modernbert"  // Warner et al. 2024, arXiv:2412.13663
)

// families lists all families.
func families() []Family {
	return []Family{bert, distilBERT, RoBERTa, xlmRoBERTa, MPNet, modernBERT}
}

// Config is the shape of a model. Vectors depend on every field.
type Config struct {
	Family       Family
	Hidden       int // width of the hidden states
	Layers       int
	Heads        int
	Intermediate int // width inside the feed-forward sublayer
	Positions    int // rows of the position embeddings; ModernBERT has none, but a limit
	Epsilon      float64
	Padding      int // RoBERTa: the token without a position; positions begin after its id

	Buckets int // MPNet: of relative positions

	// ModernBERT: layers in Global attend to all tokens, other layers to tokens at most Window away. Rotations encode
	// the positions, with a base for each kind of layer.
	Window                  int
	Global                  []bool
	GlobalTheta, LocalTheta float64
}

// firstPosition is the row of the first token's position in the position embeddings.
func (c Config) firstPosition() int {
	switch c.Family {
	case RoBERTa, xlmRoBERTa, MPNet:
		return c.Padding + 1
	}
	return 0
}

// maxTokens is how many tokens of a text have a position.
func (c Config) maxTokens() int { return c.Positions - c.firstPosition() }

// headSize is the number of columns of an attention head.
func (c Config) headSize() int { return c.Hidden / c.Heads }

// window is how far a token attends in a layer; 0: to all tokens.
func (c Config) window(layer int) int {
	if c.Family != modernBERT || c.Global[layer] {
		return 0
	}
	return c.Window
}

// model is an encoder, ready to run. It is read-only and safe for concurrent use.
type model struct {
	Config
	kernel    *simd.Kernel
	precision linear.Precision
	words     *safetensors.Table // a row for each token id
	positions [][]float32        // by segment: a row for each position, the segment's embedding included
	embedded  *norm
	layers    []layer
	final     *norm       // ModernBERT
	rotations *rotations  // ModernBERT
	relative  [][]float32 // MPNet: biases by head, for relativeBias
}

// layer is one transformer layer. Matrices are named after their results.
type layer struct {
	window            int           // how far a token attends; 0: to all
	query, key, value *linear.Layer // Hidden from Hidden
	attended          *linear.Layer // Hidden from Hidden
	wide, gate        *linear.Layer // Intermediate from Hidden; only ModernBERT has a gate
	narrow            *linear.Layer // Hidden from Intermediate

	smooth, smoothWide *linear.Smoothing // of the input of query, key and value, and of wide and gate

	// Norms of the sum after a sublayer, or of its input. The first layer of ModernBERT has no norm before attention.
	afterAttention, afterFeedForward   *norm
	beforeAttention, beforeFeedForward *norm
}

// newModel reads a model for a vocabulary of the given size. It checks every shape before it allocates memory.
func newModel(c Config, vocabulary int, r *reader) (*model, error) {
	n := familyNames[c.Family]
	r.findPrefix(n.words + ".weight")
	m := &model{Config: c, kernel: r.kernel, precision: r.precision}
	if r.err == nil {
		m.words, r.err = r.weights.Table(r.prefix+n.words+".weight", c.Hidden)
	}
	if r.err == nil && m.words.Rows < vocabulary {
		r.err = fmt.Errorf("%s: tensor %q: embeddings for %d tokens, but the vocabulary has %d: the files are of different models",
			r.weights.Name(), r.prefix+n.words+".weight", m.words.Rows, vocabulary)
	}
	modern := c.Family == modernBERT
	m.embedded = r.norm(r.prefix+n.embedded, c.Hidden, c.Epsilon, modern)
	if n.positions != "" {
		m.readPositions(r, n)
	}
	input := m.embedded // the norm that produces a layer's input
	for i := 0; i < c.Layers && r.err == nil; i++ {
		l := r.layer(i, n, c, input)
		input = l.afterFeedForward
		m.layers = append(m.layers, l)
	}
	if n.relative != "" {
		m.readRelative(r, n)
	}
	if modern && r.err == nil {
		m.final = r.norm(r.prefix+n.final, c.Hidden, c.Epsilon, true)
		m.rotations = newRotations(c)
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// readPositions reads the position embeddings and adds the segment embeddings to them.
func (m *model) readPositions(r *reader, n names) {
	positions := slices.Clone(r.read(r.prefix+n.positions+".weight", m.Positions, m.Hidden))
	if n.segments == "" {
		m.positions = [][]float32{positions}
		return
	}
	segments := r.read(r.prefix+n.segments+".weight", safetensors.AnyRows, m.Hidden)
	if r.err == nil && len(segments) == 0 {
		r.fail(fmt.Errorf("%s: tensor %q: shape [0 %d] has nothing in it", r.weights.Name(), r.prefix+n.segments+".weight", m.Hidden))
	}
	// Texts have the first segment. A passage after a query has the second one, if it exists.
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

// layer reads a layer; input is the norm that produces its input.
func (r *reader) layer(i int, n names, c Config, input *norm) layer {
	p := r.prefix + fmt.Sprintf(n.layer, i)
	if c.Family == modernBERT {
		return r.modernLayer(i, p, n, c, input)
	}
	l := layer{
		attended:         r.linear(p+n.attended, c.Hidden, c.Hidden, false, nil),
		narrow:           r.linear(p+n.narrow, c.Intermediate, c.Hidden, false, nil),
		afterAttention:   r.norm(p+n.afterAttention, c.Hidden, c.Epsilon, false),
		afterFeedForward: r.norm(p+n.afterFeedForward, c.Hidden, c.Epsilon, false),
	}
	// Of the three layers with this input, value loses most.
	l.smooth = r.smoothing(input, p+n.value, c.Hidden, c.Hidden, 0)
	l.query = r.linear(p+n.query, c.Hidden, c.Hidden, false, l.smooth)
	l.key = r.linear(p+n.key, c.Hidden, c.Hidden, false, l.smooth)
	l.value = r.linear(p+n.value, c.Hidden, c.Hidden, false, l.smooth)
	l.smoothWide = r.smoothing(l.afterAttention, p+n.wide, c.Hidden, c.Intermediate, 0)
	l.wide = r.linear(p+n.wide, c.Hidden, c.Intermediate, false, l.smoothWide)
	return l
}

func (r *reader) modernLayer(i int, p string, n names, c Config, input *norm) layer {
	l := layer{
		window:            c.window(i),
		attended:          r.linear(p+n.attended, c.Hidden, c.Hidden, true, nil),
		narrow:            r.linear(p+n.narrow, c.Intermediate, c.Hidden, true, nil),
		beforeFeedForward: r.norm(p+n.beforeFeedForward, c.Hidden, c.Epsilon, true),
	}
	if i > 0 {
		l.beforeAttention = r.norm(p+n.beforeAttention, c.Hidden, c.Epsilon, true)
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

// names are a family's tensor names, without .weight and .bias. A name is empty if the family lacks the tensor.
type names struct {
	words, positions, segments string
	embedded                   string // the norm of the embeddings
	layer                      string // prefix of a layer, by its number; the following names come after it
	query, key, value          string
	attended                   string
	afterAttention             string
	wide, narrow               string
	afterFeedForward           string
	relative                   string // MPNet's biases of relative positions

	// ModernBERT: matrices that combine several, and the norms before the sublayers.
	queryKeyValue, wideAndGate         string
	beforeAttention, beforeFeedForward string
	final                              string
}

var bertNames = names{
	words: "embeddings.word_embeddings", positions: "embeddings.position_embeddings",
	segments: "embeddings.token_type_embeddings", embedded: "embeddings.LayerNorm",
	layer: "encoder.layer.%d.",
	query: "attention.self.query", key: "attention.self.key", value: "attention.self.value",
	attended: "attention.output.dense", afterAttention: "attention.output.LayerNorm",
	wide: "intermediate.dense", narrow: "output.dense", afterFeedForward: "output.LayerNorm",
}

var familyNames = map[Family]names{
	bert: bertNames, RoBERTa: bertNames, xlmRoBERTa: bertNames,
	distilBERT: {
		words: "embeddings.word_embeddings", positions: "embeddings.position_embeddings", embedded: "embeddings.LayerNorm",
		layer: "transformer.layer.%d.",
		query: "attention.q_lin", key: "attention.k_lin", value: "attention.v_lin",
		attended: "attention.out_lin", afterAttention: "sa_layer_norm",
		wide: "ffn.lin1", narrow: "ffn.lin2", afterFeedForward: "output_layer_norm",
	},
	MPNet: {
		words: "embeddings.word_embeddings", positions: "embeddings.position_embeddings", embedded: "embeddings.LayerNorm",
		layer: "encoder.layer.%d.",
		query: "attention.attn.q", key: "attention.attn.k", value: "attention.attn.v",
		attended: "attention.attn.o", afterAttention: "attention.LayerNorm",
		wide: "intermediate.dense", narrow: "output.dense", afterFeedForward: "output.LayerNorm",
		relative: "encoder.relative_attention_bias",
	},
	modernBERT: {
		words: "embeddings.tok_embeddings", embedded: "embeddings.norm",
		layer:         "layers.%d.",
		queryKeyValue: "attn.Wqkv", attended: "attn.Wo", wideAndGate: "mlp.Wi", narrow: "mlp.Wo",
		beforeAttention: "attn_norm", beforeFeedForward: "mlp_norm", final: "final_norm",
	},
}

// reader reads layers from the weights of a model. It keeps the first error; results after it are useless.
type reader struct {
	weights   *safetensors.Weights
	kernel    *simd.Kernel
	precision linear.Precision
	prefix    string    // of the encoder's tensors
	buffer    []float32 // for matrices that must be converted
	err       error
}

// newReader returns a reader that packs matrices for a kernel.
func newReader(w *safetensors.Weights, k *simd.Kernel, p linear.Precision) *reader {
	return &reader{weights: w, kernel: k, precision: p}
}

// Err is the first error.
func (r *reader) Err() error { return r.err }

// fail keeps the first error.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// findPrefix finds the prefix of the tensor's name: models are saved alone, or together with a head.
func (r *reader) findPrefix(tensor string) {
	var found []string
	for name := range r.weights.Names() {
		if prefix, ok := strings.CutSuffix(name, tensor); ok && (prefix == "" || strings.HasSuffix(prefix, ".")) {
			found = append(found, prefix)
		}
	}
	switch {
	case len(found) == 1:
		r.prefix = found[0]
	case len(found) > 1:
		r.fail(fmt.Errorf("%s: tensors %q and %q: several encoders in one model are not supported",
			r.weights.Name(), found[0]+tensor, found[1]+tensor))
	}
}

// inside returns the name of an encoder's tensor in a model with a head.
func (r *reader) inside(name string) string { return r.prefix + name }

// read returns a tensor, which is valid until the next call.
func (r *reader) read(tensor string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	values, err := r.weights.Read(&r.buffer, tensor, shape...)
	if err != nil {
		r.fail(err)
		return nil
	}
	return values
}

// matrix returns a tensor of rows by cols, which is valid until the next call.
func (r *reader) matrix(tensor string, rows, cols int) []float32 { return r.read(tensor, rows, cols) }

// vector returns a copy of a one-dimensional tensor. If it is optional and missing, vector returns zeros.
func (r *reader) vector(tensor string, n int, optional bool) []float32 {
	if optional && !r.weights.Has(tensor) {
		return make([]float32, n)
	}
	return slices.Clone(r.read(tensor, n))
}

// norm reads a layer norm over n columns. With optionalBias, the bias may be missing.
func (r *reader) norm(name string, n int, epsilon float64, optionalBias bool) *norm {
	gain, bias := name+".weight", name+".bias"
	if old := name + ".gamma"; !r.weights.Has(gain) && r.weights.Has(old) {
		gain, bias = old, name+".beta" // names in the first checkpoints
	}
	return &norm{
		kernel: r.kernel, gain: r.vector(gain, n, false), bias: r.vector(bias, n, optionalBias), epsilon: float32(epsilon),
	}
}

// linear reads a linear layer. With optionalBias, the bias may be missing.
func (r *reader) linear(name string, in, out int, optionalBias bool, s *linear.Smoothing) *linear.Layer {
	return r.parts(name, in, out, 1, optionalBias, s)[0]
}

// parts reads a matrix that contains several layers of the same shape, one below the other.
func (r *reader) parts(name string, in, out, count int, optionalBias bool, s *linear.Smoothing) []*linear.Layer {
	layers := make([]*linear.Layer, count)
	bias := r.vector(name+".bias", count*out, optionalBias)
	weights := r.read(name+".weight", count*out, in)
	if r.err != nil {
		return layers
	}
	for i := range layers {
		layers[i] = linear.New(r.kernel, r.precision, simd.NewView(weights[i*out*in:][:out*in], out, in), bias[i*out:][:out], s)
	}
	r.weights.Forget() // the packed weights are not read again
	return layers
}

// smoothing returns the smoothing for layers after a norm. It uses the rows from first on of an out by in matrix.
func (r *reader) smoothing(n *norm, name string, in, out, first int) *linear.Smoothing {
	if r.precision != linear.Int8 {
		return nil
	}
	weights := r.read(name+".weight", out, in)
	if r.err != nil {
		return nil
	}
	return linear.Smooth(r.precision, n.gain, n.bias, simd.NewView(weights[first*in:], out-first, in))
}
