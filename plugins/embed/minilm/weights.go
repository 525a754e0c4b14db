package minilm

import (
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// encoder is the BERT encoder (Devlin et al. 2018, arXiv:1810.04805), ready to
// run. It is read-only.
type encoder struct {
	config
	kernel    *simd.Kernel
	words     []float32 // a row of Hidden floats for each token id, in file
	positions []float32 // a row for each position, segment embedding included
	embedded  layerNorm
	layers    []layer
	file      *mapping // whose memory words may be
}

// layer is one transformer layer. Matrices are named for their results.
type layer struct {
	query, key, value *simd.Linear // Hidden from Hidden
	attended          *simd.Linear // Hidden from Hidden
	wide              *simd.Linear // Intermediate from Hidden
	narrow            *simd.Linear // Hidden from Intermediate
	afterAttention    layerNorm
	afterFeedForward  layerNorm
}

// newEncoder reads the weights for a vocabulary of the given size.
func newEncoder(c config, vocabulary int, t *tensors, k *simd.Kernel) (*encoder, error) {
	const words = "embeddings.word_embeddings.weight"
	r := &reader{tensors: t, kernel: k}
	if !t.has(words) {
		r.prefix = "bert." // models saved together with a head
	}
	e := &encoder{config: c, kernel: k}
	e.words = r.read(words, anyRows, c.Hidden)
	e.positions = r.read("embeddings.position_embeddings.weight", c.Positions, c.Hidden)
	segments := r.read("embeddings.token_type_embeddings.weight", anyRows, c.Hidden)
	e.embedded = r.norm("embeddings.LayerNorm", c)
	for i := 0; i < c.Layers && r.err == nil; i++ {
		e.layers = append(e.layers, r.layer(fmt.Sprintf("encoder.layer.%d.", i), c))
	}
	if r.err != nil {
		return nil, r.err
	}
	if len(e.words) < vocabulary*c.Hidden || len(segments) == 0 {
		return nil, fmt.Errorf("%s: embeddings for %d tokens, but the vocabulary has %d: the files are of different models",
			t.name, len(e.words)/c.Hidden, vocabulary)
	}
	e.positions = slices.Clone(e.positions)
	for i := range e.positions {
		e.positions[i] += segments[i%c.Hidden] // all text is in the first segment
	}
	return e, nil
}

// reader reads tensors. After the first error, which it holds, it returns nil.
type reader struct {
	tensors *tensors
	kernel  *simd.Kernel
	prefix  string
	err     error
}

func (r *reader) read(tensor string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	var values []float32
	values, r.err = r.tensors.read(r.prefix+tensor, shape...)
	return values
}

func (r *reader) norm(name string, c config) layerNorm {
	return layerNorm{
		kernel:  r.kernel,
		gain:    slices.Clone(r.read(name+".weight", c.Hidden)),
		bias:    slices.Clone(r.read(name+".bias", c.Hidden)),
		epsilon: float32(c.Epsilon),
	}
}

func (r *reader) linear(in, out int, name string) *simd.Linear {
	weights, bias := r.read(name+".weight", out, in), r.read(name+".bias", out)
	if r.err != nil {
		return nil
	}
	return r.kernel.NewLinear(simd.NewView(weights, out, in), bias)
}

func (r *reader) layer(prefix string, c config) layer {
	attention := prefix + "attention."
	return layer{
		query:            r.linear(c.Hidden, c.Hidden, attention+"self.query"),
		key:              r.linear(c.Hidden, c.Hidden, attention+"self.key"),
		value:            r.linear(c.Hidden, c.Hidden, attention+"self.value"),
		attended:         r.linear(c.Hidden, c.Hidden, attention+"output.dense"),
		wide:             r.linear(c.Hidden, c.Intermediate, prefix+"intermediate.dense"),
		narrow:           r.linear(c.Intermediate, c.Hidden, prefix+"output.dense"),
		afterAttention:   r.norm(attention+"output.LayerNorm", c),
		afterFeedForward: r.norm(prefix+"output.LayerNorm", c),
	}
}
