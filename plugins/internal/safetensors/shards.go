package safetensors

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxIndex bounds the bytes of the list of tensors in several files.
	maxIndex = 16 << 20
	// maxShards bounds the number of files. Encoders have one, or a few.
	maxShards = 256
)

// openShards opens weights in several files, which an index lists by tensor.
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

// readIndex returns the name of the file that holds each tensor, all in the folder of the
// index.
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
