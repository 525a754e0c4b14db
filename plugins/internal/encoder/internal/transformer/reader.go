package transformer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// Reader reads layers out of the weights of a model. After the first error, which it
// holds, it returns nothing of use.
type Reader struct {
	weights   *safetensors.Weights
	kernel    *simd.Kernel
	precision linear.Precision
	prefix    string    // of the encoder's tensors
	buffer    []float32 // for matrices that must be converted
	err       error
}

// NewReader returns a reader that packs matrices for a kernel.
func NewReader(w *safetensors.Weights, k *simd.Kernel, p linear.Precision) *Reader {
	return &Reader{weights: w, kernel: k, precision: p}
}

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// fail keeps the first error.
func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// findPrefix sets the prefix under which the tensor is: models are saved alone, or
// together with a head.
func (r *Reader) findPrefix(tensor string) {
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

// Inside is the name of a tensor of the encoder, as it is called in a model with a head.
func (r *Reader) Inside(name string) string { return r.prefix + name }

// read returns a tensor, which is valid until the next call.
func (r *Reader) read(tensor string, shape ...int) []float32 {
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

// Matrix returns a tensor of rows by cols, which is valid until the next call.
func (r *Reader) Matrix(tensor string, rows, cols int) []float32 { return r.read(tensor, rows, cols) }

// Vector returns a copy of a tensor of one dimension, or zeros where there is none and it
// may be missing.
func (r *Reader) Vector(tensor string, n int, optional bool) []float32 {
	if optional && !r.weights.Has(tensor) {
		return make([]float32, n)
	}
	return slices.Clone(r.read(tensor, n))
}

// Norm reads a layer norm over n columns. It may have no bias.
func (r *Reader) Norm(name string, n int, epsilon float64, optionalBias bool) *Norm {
	gain, bias := name+".weight", name+".bias"
	if old := name + ".gamma"; !r.weights.Has(gain) && r.weights.Has(old) {
		gain, bias = old, name+".beta" // as the first checkpoints call them
	}
	return &Norm{
		kernel: r.kernel, gain: r.Vector(gain, n, false), bias: r.Vector(bias, n, optionalBias), epsilon: float32(epsilon),
	}
}

// linear reads a linear layer. It may have no bias.
func (r *Reader) linear(name string, in, out int, optionalBias bool, s *linear.Smoothing) *linear.Layer {
	return r.parts(name, in, out, 1, optionalBias, s)[0]
}

// parts reads a matrix that holds several layers of the same shape, one below the other.
func (r *Reader) parts(name string, in, out, count int, optionalBias bool, s *linear.Smoothing) []*linear.Layer {
	layers := make([]*linear.Layer, count)
	bias := r.Vector(name+".bias", count*out, optionalBias)
	weights := r.read(name+".weight", count*out, in)
	if r.err != nil {
		return layers
	}
	for i := range layers {
		layers[i] = linear.NewSmooth(r.kernel, r.precision, simd.NewView(weights[i*out*in:][:out*in], out, in), bias[i*out:][:out], s)
	}
	r.weights.Forget() // what was packed is not needed again
	return layers
}

// smoothing returns that of layers behind a norm, by the outputs from first on of a matrix
// of out by in.
func (r *Reader) smoothing(n *Norm, name string, in, out, first int) *linear.Smoothing {
	if r.precision != linear.Int8 {
		return nil
	}
	weights := r.read(name+".weight", out, in)
	if r.err != nil {
		return nil
	}
	return linear.Smooth(r.precision, n.gain, n.bias, simd.NewView(weights[first*in:], out-first, in))
}
