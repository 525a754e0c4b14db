package safetensors

import (
	"fmt"
	"runtime"
)

// Table is a tensor of which single rows are read, such as the embeddings of tokens: it
// stays in the file. It is safe for concurrent use.
type Table struct {
	Rows, Cols int
	weights    *Weights // whose memory raw is
	raw        []byte
	stride     int // bytes of a row
	dtype      string
	floats     []float32 // raw, where it needs no conversion
}

// Table returns a tensor of rows of cols numbers, which are checked to be finite.
func (w *Weights) Table(tensor string, cols int) (*Table, error) {
	f, err := w.file(tensor)
	if err != nil {
		return nil, err
	}
	raw, e, err := f.raw(tensor, []int{AnyRows, cols})
	if err != nil {
		return nil, err
	}
	t := &Table{Rows: e.Shape[0], Cols: cols, weights: w, raw: raw, stride: cols * decoders[e.Dtype].size, dtype: e.Dtype}
	t.floats, _ = asFloats(e.Dtype, raw)
	if cols == 0 {
		return nil, fmt.Errorf("%s: tensor %q: shape %v has nothing in it", f.name, tensor, e.Shape)
	}
	// In parts, so that what was checked does not stay in memory.
	const part = 4 << 20
	for begin := 0; begin < len(raw); begin += part {
		block := raw[begin:min(begin+part, len(raw))]
		if i := notFinite(e.Dtype, block); i >= 0 {
			return nil, damaged(f.name, tensor, e.Dtype, raw, begin/decoders[e.Dtype].size+i)
		}
		f.held.forget(block)
	}
	return t, nil
}

// Read sets dst to row i.
func (t *Table) Read(dst []float32, i int) {
	if t.floats != nil {
		copy(dst[:t.Cols], t.floats[i*t.Cols:][:t.Cols])
	} else {
		decoders[t.dtype].widen(dst[:t.Cols], t.raw[i*t.stride:][:t.stride])
	}
	runtime.KeepAlive(t.weights)
}
