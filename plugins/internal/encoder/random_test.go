package encoder

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// config holds the differences between the models of these tests.
type config struct {
	Hidden       int
	Layers       int
	Heads        int
	Intermediate int
	Positions    int
	Epsilon      float64
	MaxTokens    int
	MeanPooling  bool
	Normalize    bool
}

// randomModel is a BERT encoder with random weights.
type randomModel struct {
	config
	dtype   string
	prefix  string
	tensors map[string][]float32
	shapes  map[string][]int
}

func newRandomModel(c config, dtype, prefix string, r *rand.Rand) *randomModel {
	m := &randomModel{c, dtype, prefix, map[string][]float32{}, map[string][]int{}}
	add := func(name string, mean, spread float64, shape ...int) {
		n := 1
		for _, s := range shape {
			n *= s
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = roundTo(dtype, float32(mean+spread*r.NormFloat64()))
		}
		m.tensors[name], m.shapes[name] = values, shape
	}
	norm := func(name string) {
		add(name+".weight", 1, 0.3, c.Hidden)
		add(name+".bias", 0, 0.3, c.Hidden)
	}
	linear := func(name string, out, in int) {
		add(name+".weight", 0, 1.5/math.Sqrt(float64(in)), out, in)
		add(name+".bias", 0, 0.3, out)
	}
	add("embeddings.word_embeddings.weight", 0, 1, len(strings.Fields(smallVocabulary))+3, c.Hidden)
	add("embeddings.position_embeddings.weight", 0, 1, c.Positions, c.Hidden)
	add("embeddings.token_type_embeddings.weight", 0, 1, 2, c.Hidden)
	norm("embeddings.LayerNorm")
	for i := range c.Layers {
		layer := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"} {
			linear(layer+name, c.Hidden, c.Hidden)
		}
		norm(layer + "attention.output.LayerNorm")
		linear(layer+"intermediate.dense", c.Intermediate, c.Hidden)
		linear(layer+"output.dense", c.Hidden, c.Intermediate)
		norm(layer + "output.LayerNorm")
	}
	return m
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(7, n)) }

// roundTo rounds x to a number of the given type.
func roundTo(dtype string, x float32) float32 {
	switch dtype {
	case "BF16":
		return math.Float32frombits(math.Float32bits(x) &^ 0xffff)
	case "F16":
		return float16.Frombits(toHalf(x)).Float32()
	}
	return x
}

// toHalf rounds toward zero; numbers that are not normal in half precision become zero.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	exponent := int(b>>23&0xff) - 127 + 15
	if exponent <= 0 || exponent > 30 {
		return uint16(b >> 16 & 0x8000)
	}
	return uint16(b>>16&0x8000) | uint16(exponent)<<10 | uint16(b>>13&0x3ff)
}

// files returns the files of the model's folder. shift puts the tensors at an odd position in the
// file.
func (m *randomModel) files(t *testing.T, shift int) map[string]string {
	t.Helper()
	type entry struct {
		Dtype   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header := map[string]entry{}
	data := make([]byte, shift)
	for name, values := range m.tensors {
		start := int64(len(data))
		for _, v := range values {
			switch m.dtype {
			case "F32":
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			case "BF16":
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
			case "F16":
				data = binary.LittleEndian.AppendUint16(data, toHalf(v))
			}
		}
		header[m.prefix+name] = entry{m.dtype, m.shapes[name], [2]int64{start, int64(len(data))}}
	}
	asJSON := func(v any) string {
		text, err := json.Marshal(v)
		must.Do(t, err)
		return string(text)
	}
	modules := []map[string]string{{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Pooling"}}
	if m.Normalize {
		modules = append(modules, map[string]string{"type": "sentence_transformers.models.Normalize"})
	}
	return map[string]string{
		"model.safetensors": string(tensorFile(asJSON(header), data)),
		"vocab.txt":         smallVocabulary,
		"config.json": asJSON(map[string]any{
			"model_type": "bert", "hidden_size": m.Hidden, "num_hidden_layers": m.Layers, "num_attention_heads": m.Heads,
			"intermediate_size": m.Intermediate, "max_position_embeddings": m.Positions, "layer_norm_eps": m.Epsilon,
		}),
		"sentence_bert_config.json": asJSON(map[string]any{"max_seq_length": m.MaxTokens}),
		"modules.json":              asJSON(modules),
		"1_Pooling/config.json":     asJSON(map[string]any{"pooling_mode_cls_token": !m.MeanPooling, "pooling_mode_mean_tokens": m.MeanPooling}),
	}
}

// tensorFile makes a safetensors file.
func tensorFile(header string, data []byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}
