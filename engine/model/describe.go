package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// architectures are the model types that the stages encoder and cross_encoder read.
var architectures = []string{"bert", "distilbert", "roberta", "xlm-roberta", "mpnet", "modernbert"}

// settings are what racflow reads of config.json here.
type settings struct {
	Type          string   `json:"model_type"`
	Architectures []string `json:"architectures"`
	Hidden        int      `json:"hidden_size"`
	Dim           int      `json:"dim"` // of DistilBERT
}

func readSettings(dir string) (settings, error) {
	var s settings
	raw, err := readBounded(filepath.Join(dir, configFile), maxSettings)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", configFile, err)
	}
	return s, nil
}

// readable says why no stage could read a model, before its weights are brought.
func readable(dir string) error {
	s, err := readSettings(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(architectures, s.Type) {
		return fmt.Errorf("its %s has the model_type %.100q, which no stage reads: they read %s", configFile, s.Type, strings.Join(architectures, ", "))
	}
	return nil
}

// Description is what the files of a model say about it.
type Description struct {
	Kind       Kind
	Type       string // of the architecture, such as bert
	Parameters int64
	Dimensions int // of the vectors; 0: not said
}

// Describe reads the settings of a model in a folder, and the headers of its weights.
func Describe(dir string) (Description, error) {
	root, modules, err := readModules(dir)
	if err != nil {
		return Description{}, err
	}
	base := filepath.Join(dir, filepath.FromSlash(root))
	s, err := readSettings(base)
	if err != nil {
		return Description{}, err
	}
	d := Description{Kind: Embed, Type: s.Type, Dimensions: max(s.Hidden, s.Dim)}
	pooled := slices.ContainsFunc(modules, func(m module) bool { return m.is("Pooling") }) // so it makes vectors, whatever else it has
	if !pooled && slices.ContainsFunc(s.Architectures, func(a string) bool { return strings.HasSuffix(a, "ForSequenceClassification") }) {
		d.Kind, d.Dimensions = Rerank, 0
	}
	for _, m := range modules {
		var dense struct {
			Out int `json:"out_features"`
		}
		raw, err := readBounded(filepath.Join(dir, m.Path, configFile), maxSettings)
		if m.is("Dense") && err == nil && json.Unmarshal(raw, &dense) == nil && dense.Out > 0 {
			d.Dimensions = dense.Out
		}
	}
	shards, err := filepath.Glob(filepath.Join(escapeGlob(base), "*.safetensors"))
	if err != nil {
		return d, err
	}
	for _, shard := range shards {
		n, err := parameters(shard)
		if err != nil {
			return d, err
		}
		d.Parameters += n
	}
	return d, nil
}

// escapeGlob makes a folder's name stand for itself.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// maxHeader is how many bytes the header of safetensors may have, as their own library has it.
const maxHeader = 100_000_000

// checkWeights says why a file is no file of safetensors: a page of a proxy, or half of one.
func checkWeights(path string) error {
	_, err := parameters(path)
	return err
}

// parameters counts the numbers in a file of safetensors by its header.
func parameters(path string) (int64, error) {
	invalid := func(why string) (int64, error) {
		return 0, fmt.Errorf("%s is no file of safetensors: %s", filepath.Base(path), why)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var size [8]byte
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return invalid("it has less than 8 bytes")
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxHeader || int64(n) > info.Size()-8 {
		return invalid("its header does not fit into it")
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(f, header); err != nil {
		return 0, err
	}
	var tensors map[string]json.RawMessage
	if err := json.Unmarshal(header, &tensors); err != nil {
		return invalid("its header is no JSON object")
	}
	var count, end int64
	for name, raw := range tensors {
		if name == "__metadata__" {
			continue
		}
		var t struct {
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return invalid(fmt.Sprintf("its tensor %.100q: %v", name, err))
		}
		numbers := int64(1)
		for _, d := range t.Shape {
			if d < 0 || d > 0 && numbers > 8*info.Size()/d { // a number has a bit or more
				return invalid(fmt.Sprintf("its tensor %.100q has an impossible shape", name))
			}
			numbers *= d
		}
		count, end = count+numbers, max(end, t.Offsets[1])
	}
	if end != info.Size()-8-int64(n) {
		return invalid(fmt.Sprintf("it has %d bytes, its header says %d", info.Size(), end+8+int64(n)))
	}
	return count, nil
}
