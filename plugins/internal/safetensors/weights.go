package safetensors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// FileName is the name of the weights in a model's folder.
const FileName = "model.safetensors"

// AnyRows stands for a dimension of any size in a shape.
const AnyRows = -1

// Weights are the tensors of a model. Reading is safe for concurrent use. What
// [Weights.Read] returns may lie in the file's own memory, so whoever uses it keeps a
// reference to the Weights as well, and the files must not be changed in place
// meanwhile, only replaced.
type Weights struct {
	name    string           // of the only file, or of the index
	files   []*file          // in the order of their names
	tensors map[string]*file // where each is
}

// Open opens the weights in a model's folder: model.safetensors, or the files that
// model.safetensors.index.json names. A damaged file, or weights in another format, are an
// error that names the file. [Weights.Close] must be called after the last [Weights.Sum].
func Open(dir string) (*Weights, error) {
	path := filepath.Join(dir, FileName)
	f, err := openFile(path)
	switch {
	case err == nil:
		w := &Weights{name: path, files: []*file{f}, tensors: make(map[string]*file, len(f.entries))}
		for tensor := range f.entries {
			w.tensors[tensor] = f
		}
		return w, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if _, indexErr := os.Stat(path + ".index.json"); indexErr == nil {
		return openShards(dir, path+".index.json")
	}
	if other := filepath.Join(dir, "pytorch_model.bin"); exists(other) {
		return nil, fmt.Errorf("%s: weights of PyTorch are not supported: save the model as %s", other, FileName)
	}
	return nil, fmt.Errorf("open the model: %w: give the folder that holds %s", err, FileName)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Name is the path of the file, or of the index of several, for errors.
func (w *Weights) Name() string { return w.name }

// Names yields the names of all tensors, sorted.
func (w *Weights) Names() iter.Seq[string] { return slices.Values(slices.Sorted(maps.Keys(w.tensors))) }

// Has reports whether there is such a tensor.
func (w *Weights) Has(tensor string) bool { return w.tensors[tensor] != nil }

// Shape returns the dimensions of a tensor, nil where there is none of the name.
func (w *Weights) Shape(tensor string) []int {
	if f := w.tensors[tensor]; f != nil {
		return slices.Clone(f.entries[tensor].Shape)
	}
	return nil
}

// Read returns a tensor as float32, row by row: in the file's own memory, so that it must not
// be changed, or, where numbers must be converted, in buffer, which grows where it is too
// small, and may be nil. Another shape than the given one, in which a dimension may be [AnyRows],
// and numbers that are not finite, are errors.
func (w *Weights) Read(buffer *[]float32, tensor string, shape ...int) ([]float32, error) {
	f, err := w.file(tensor)
	if err != nil {
		return nil, err
	}
	raw, e, err := f.raw(tensor, shape)
	if err != nil {
		return nil, err
	}
	if i := notFinite(e.Dtype, raw); i >= 0 {
		return nil, damaged(f.name, tensor, e.Dtype, raw, i)
	}
	values, ok := asFloats(e.Dtype, raw)
	if !ok {
		decode := decoders[e.Dtype]
		if buffer == nil {
			buffer = new([]float32)
		}
		n := len(raw) / decode.size
		if cap(*buffer) < n {
			*buffer = make([]float32, n)
		}
		values = (*buffer)[:n]
		decode.widen(values, raw)
	}
	return values, nil
}

// damaged is the error of a number that is not finite.
func damaged(name, tensor, dtype string, raw []byte, i int) error {
	var value [1]float32
	decoder := decoders[dtype]
	decoder.widen(value[:], raw[i*decoder.size:])
	return fmt.Errorf("%s: tensor %q: number %d is %v: the weights are damaged", name, tensor, i, value[0])
}

func (w *Weights) file(tensor string) (*file, error) {
	f := w.tensors[tensor]
	if f == nil {
		return nil, fmt.Errorf("%s: tensor %q is missing", w.name, tensor)
	}
	return f, nil
}

// Sum writes the files as they are to sum, such as a hash. They do not count to this
// process's memory. It ends with an error when ctx does.
func (w *Weights) Sum(ctx context.Context, sum io.Writer) error {
	for _, f := range w.files {
		if err := f.sum(ctx, sum); err != nil {
			return err
		}
	}
	return nil
}

// Forget drops the pages read so far from this process's memory; the page cache has
// them when they are read again.
func (w *Weights) Forget() {
	for _, f := range w.files {
		f.held.forget(f.held.data)
	}
}

// Close closes the files. What was read stays valid.
func (w *Weights) Close() {
	for _, f := range w.files {
		f.disk.Close()
	}
}
