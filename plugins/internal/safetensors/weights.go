package safetensors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

// Weights are the tensors of a model. Reading is safe for concurrent use. The result of [Weights.Read] may lie in the
// memory of the mapped file. So keep a reference to the Weights while using it, and do not change the files in place,
// only replace them.
type Weights struct {
	name    string           // of the only file, or of the index
	files   []*file          // in the order of their names
	tensors map[string]*file // by tensor: its file
	trusted bool             // all numbers are known to be finite
}

const (
	// maxIndex bounds the size of the index of several files.
	maxIndex = 16 << 20
	// maxShards bounds the number of files. Encoders have one, or a few.
	maxShards = 256
)

// openShards opens weights in several files; an index lists the file of each tensor.
func openShards(dir, index string) (*Weights, error) {
	where, err := readIndex(index)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", index, err)
	}
	w := &Weights{name: index, tensors: make(map[string]*file, len(where))}
	shards := map[string]*file{}
	for _, name := range slices.Compact(slices.Sorted(maps.Values(where))) {
		f, err := openFile(filepath.Join(dir, name))
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("%s: weights in %s: %w", index, name, err)
		}
		w.files = append(w.files, f)
		shards[name] = f
	}
	for tensor, name := range where {
		f := shards[name]
		if _, ok := f.entries[tensor]; !ok {
			w.Close()
			return nil, fmt.Errorf("%s: tensor %.200q is missing in %s, where %s says it is", index, tensor, f.name, filepath.Base(index))
		}
		w.tensors[tensor] = f
	}
	return w, nil
}

// readIndex returns the name of each tensor's file. All files are in the folder of the index.
func readIndex(path string) (map[string]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, fmt.Errorf("not a file, or one of more than %d bytes: not the index of an encoder's weights", maxIndex)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%.200v", err)
	}
	if len(index.Map) == 0 || len(index.Map) > maxTensors {
		return nil, fmt.Errorf("weight_map lists %d tensors, expected 1 to %d", len(index.Map), maxTensors)
	}
	names := map[string]bool{}
	for tensor, name := range index.Map {
		if name != filepath.Base(name) || strings.ContainsAny(name, `/\`) || !strings.HasSuffix(name, ".safetensors") {
			return nil, fmt.Errorf("tensor %.200q is in %.200q, expected the name of a .safetensors file beside the index", tensor, name)
		}
		if names[name] = true; len(names) > maxShards {
			return nil, fmt.Errorf("more than %d files: not the weights of an encoder", maxShards)
		}
	}
	return index.Map, nil
}

// Table is a tensor for reading single rows, such as token embeddings. It stays in the file. It is safe for
// concurrent use.
type Table struct {
	Rows, Cols int
	weights    *Weights // owner of raw's memory
	raw        []byte
	stride     int // bytes of a row
	dtype      string
	floats     []float32 // raw, if it needs no conversion
}

// Table returns a tensor with rows of cols numbers. It checks that all numbers are finite.
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
	if !w.trusted {
		if i := notFinite(e.Dtype, raw); i >= 0 {
			return nil, damaged(f.name, tensor, e.Dtype, raw, i)
		}
		w.Forget() // the checked pages are not needed soon
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

// FileName is the name of the weights file in a model's folder.
const FileName = "model.safetensors"

// AnyRows in a shape matches any size of a dimension.
const AnyRows = -1

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

// Read returns a tensor as float32, row by row. The result may lie in the memory of the mapped file and must not be
// changed. If numbers must be converted, the result is in buffer, which grows if it is too small, and may be nil. A
// shape other than the given one, in which a dimension may be [AnyRows], is an error, and so are numbers that are not
// finite.
func (w *Weights) Read(buffer *[]float32, tensor string, shape ...int) ([]float32, error) {
	f, err := w.file(tensor)
	if err != nil {
		return nil, err
	}
	raw, e, err := f.raw(tensor, shape)
	if err != nil {
		return nil, err
	}
	if !w.trusted {
		if i := notFinite(e.Dtype, raw); i >= 0 {
			return nil, damaged(f.name, tensor, e.Dtype, raw, i)
		}
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

// damaged is the error for a number that is not finite.
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

// Sum writes the unchanged files to sum, such as a hash. The files do not count towards this process's memory. If ctx
// ends, Sum returns an error.
func (w *Weights) Sum(ctx context.Context, sum io.Writer) error {
	for _, f := range w.files {
		if err := f.sum(ctx, sum); err != nil {
			return err
		}
	}
	return nil
}

// Trust says that these files were checked before: all numbers that will be read are finite. They are not checked
// again.
func (w *Weights) Trust() { w.trusted = true }

// Version changes whenever somebody writes to the files or replaces them. It is empty if the system does not provide
// this, and for two seconds after a change, since another change might have the same time.
func (w *Weights) Version() string {
	var versions []byte
	for _, f := range w.files {
		identity, changed, ok := identify(f.disk)
		if !ok || time.Since(changed) < 2*time.Second {
			return ""
		}
		versions = fmt.Appendf(versions, "%s %d;", identity, changed.UnixNano())
	}
	return string(versions)
}

// Forget drops the pages read so far from this process's memory. If they are read again, they come from the page
// cache.
func (w *Weights) Forget() {
	for _, f := range w.files {
		support.Unread(f.all)
	}
}

// Close closes the files. Tensors that were read stay valid.
func (w *Weights) Close() {
	for _, f := range w.files {
		f.disk.Close()
	}
}
