package encoder

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/folder"
	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// top makes vectors of hidden states: by pooling, linear layers, the first dimensions alone
// (Kusupati et al. 2022, arXiv:2205.13147), and normalising.
type top struct {
	kernel    *simd.Kernel
	pooling   folder.Pooling
	dense     []dense
	dim       int
	normalize bool
}

// readTop reads the linear layers that follow pooling, and adds them to sum.
func readTop(f folder.Model, o Options, sum io.Writer) (top, error) {
	t := top{kernel: o.Kernel, pooling: f.Pooling, dim: f.Shape.Hidden, normalize: f.Normalize}
	for _, d := range f.Dense {
		if d.In != t.dim {
			return top{}, fmt.Errorf("%s: in_features is %d, but what comes before gives %d", d.Dir, d.In, t.dim)
		}
		layer := dense{activation: d.Activation}
		err := readWeights(d.Dir, o, sum, func(r *transformer.Reader) {
			layer.read(r, "linear", d.In, d.Out, !d.Bias)
		})
		if err != nil {
			return top{}, err
		}
		t.dense = append(t.dense, layer)
		t.dim = d.Out
	}
	if o.Dimensions < 0 || o.Dimensions > t.dim {
		return top{}, fmt.Errorf("%d dimensions of a model that has %d", o.Dimensions, t.dim)
	}
	if o.Dimensions > 0 {
		t.dim = o.Dimensions
	}
	return t, nil
}

// vector sets a job's result to the vector of its text.
func (t *top) vector(j job, x simd.View) {
	v := j.result
	if len(v) != x.Cols {
		v = make([]float32, x.Cols)
	}
	n := pool(v, t.pooling, x, j.skip)
	scale(v, 1/float32(n))
	for _, layer := range t.dense {
		v = layer.apply(v)
	}
	if len(v) > 0 && &v[0] != &j.result[0] {
		copy(j.result, v)
	}
	if t.normalize {
		length := math.Sqrt(float64(t.kernel.Dot(j.result, j.result)))
		scale(j.result, float32(1/max(length, 1e-12)))
	}
}

// pool adds the tokens of a text that its vector is made of, but the first skip, to v,
// and returns how many these are.
func pool(v []float32, by folder.Pooling, x simd.View, skip int) int {
	switch by {
	case folder.CLS:
		x = simd.View{Data: x.Row(skip), Rows: 1, Cols: x.Cols, Stride: x.Stride}
	case folder.Last:
		x = simd.View{Data: x.Row(x.Rows - 1), Rows: 1, Cols: x.Cols, Stride: x.Stride}
	default:
		x = simd.View{Data: x.Data[skip*x.Stride:], Rows: x.Rows - skip, Cols: x.Cols, Stride: x.Stride}
	}
	for i := range x.Rows {
		for col, value := range x.Row(i) {
			v[col] += value
		}
	}
	return x.Rows
}

func scale(v []float32, factor float32) {
	for i := range v {
		v[i] *= factor
	}
}

// dense is a linear layer with an activation, for one vector at a time. It is computed in
// float32 as it stands: there are few of them.
type dense struct {
	weights    []float32 // a row for each output
	bias       []float32
	in, out    int
	activation folder.Activation
}

func (d *dense) read(r *transformer.Reader, name string, in, out int, optionalBias bool) {
	d.in, d.out = in, out
	d.bias = r.Vector(name+".bias", out, optionalBias)
	d.weights = slices.Clone(r.Matrix(name+".weight", out, in))
}

// apply returns activation(w·v + bias).
func (d *dense) apply(v []float32) []float32 {
	out := make([]float32, d.out)
	for i := range out {
		out[i] = activate(d.activation, simd.Dot(d.weights[i*d.in:][:d.in], v)+d.bias[i])
	}
	return out
}

func activate(a folder.Activation, x float32) float32 {
	switch a {
	case folder.Tanh:
		return float32(math.Tanh(float64(x)))
	case folder.ReLU:
		return max(x, 0)
	case folder.GELU:
		return float32(float64(x) / 2 * math.Erfc(-float64(x)/math.Sqrt2))
	case folder.Sigmoid:
		return float32(1 / (1 + math.Exp(-float64(x))))
	}
	return x
}
