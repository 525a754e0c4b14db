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

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// config is what the models of these tests differ in.
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

// randomModel is a BERT encoder with random weights, and the plain way to run it.
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

// toHalf rounds toward zero; numbers that are not normal in half precision
// become zero.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	exponent := int(b>>23&0xff) - 127 + 15
	if exponent <= 0 || exponent > 30 {
		return uint16(b >> 16 & 0x8000)
	}
	return uint16(b>>16&0x8000) | uint16(exponent)<<10 | uint16(b>>13&0x3ff)
}

// files returns the files of the model's folder. shift puts the tensors at an
// odd place in the file.
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

// tensorFile puts together a safetensors file.
func tensorFile(header string, data []byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

// encode runs the encoder in float64, one number after the other.
func (m *randomModel) encode(tokens []int32) []float64 {
	row := func(name string, i int) []float32 {
		return m.tensors["embeddings."+name+"_embeddings.weight"][i*m.Hidden:][:m.Hidden]
	}
	x := make([][]float64, len(tokens))
	for i, id := range tokens {
		x[i] = make([]float64, m.Hidden)
		for j := range x[i] {
			x[i][j] = float64(row("word", int(id))[j]) + float64(row("position", i)[j]) + float64(row("token_type", 0)[j])
		}
		m.norm(x[i], "embeddings.LayerNorm")
	}
	for i := range m.Layers {
		layer := fmt.Sprintf("encoder.layer.%d.", i)
		q, k, v := m.linear(x, layer+"attention.self.query"), m.linear(x, layer+"attention.self.key"), m.linear(x, layer+"attention.self.value")
		m.addNorm(x, m.linear(m.attend(q, k, v), layer+"attention.output.dense"), layer+"attention.output.LayerNorm")
		wide := m.linear(x, layer+"intermediate.dense")
		for _, row := range wide {
			for j, v := range row {
				row[j] = v / 2 * math.Erfc(-v/math.Sqrt2)
			}
		}
		m.addNorm(x, m.linear(wide, layer+"output.dense"), layer+"output.LayerNorm")
	}
	if !m.MeanPooling {
		x = x[:1]
	}
	out := make([]float64, m.Hidden)
	length := 0.0
	for j := range out {
		for _, row := range x {
			out[j] += row[j] / float64(len(x))
		}
		length += out[j] * out[j]
	}
	for j := range out {
		if m.Normalize {
			out[j] /= math.Sqrt(length)
		}
	}
	return out
}

func (m *randomModel) linear(x [][]float64, name string) [][]float64 {
	w, bias := m.tensors[name+".weight"], m.tensors[name+".bias"]
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = make([]float64, len(bias))
		for o := range bias {
			out[i][o] = float64(bias[o])
			for j, v := range row {
				out[i][o] += v * float64(w[o*len(row)+j])
			}
		}
	}
	return out
}

func (m *randomModel) attend(q, k, v [][]float64) [][]float64 {
	size := m.Hidden / m.Heads
	out := make([][]float64, len(q))
	for i := range q {
		out[i] = make([]float64, m.Hidden)
		for at := 0; at < m.Hidden; at += size {
			weights, sum := make([]float64, len(k)), 0.0
			for t := range k {
				for d := at; d < at+size; d++ {
					weights[t] += q[i][d] * k[t][d]
				}
				weights[t] = math.Exp(weights[t] / math.Sqrt(float64(size)))
				sum += weights[t]
			}
			for t, w := range weights {
				for d := at; d < at+size; d++ {
					out[i][d] += w / sum * v[t][d]
				}
			}
		}
	}
	return out
}

func (m *randomModel) addNorm(x, change [][]float64, name string) {
	for i := range x {
		for j := range x[i] {
			x[i][j] += change[i][j]
		}
		m.norm(x[i], name)
	}
}

func (m *randomModel) norm(x []float64, name string) {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	for j, v := range x {
		x[j] = (v-mean)/math.Sqrt(variance+m.Epsilon)*float64(m.tensors[name+".weight"][j]) + float64(m.tensors[name+".bias"][j])
	}
}

// TestReference holds models of many sizes to the plain computation.
func TestReference(t *testing.T) {
	for i, c := range []struct {
		config
		dtype, prefix string
		shift         int
	}{
		{config{Hidden: 32, Layers: 1, Heads: 1, Intermediate: 64, Positions: 40, Epsilon: 1e-12, MaxTokens: 40, MeanPooling: true, Normalize: true}, "F32", "", 0},
		{config{Hidden: 60, Layers: 3, Heads: 4, Intermediate: 100, Positions: 70, Epsilon: 1e-6, MaxTokens: 64, MeanPooling: true}, "F32", "", 2},
		{config{Hidden: 96, Layers: 2, Heads: 3, Intermediate: 400, Positions: 33, Epsilon: 1e-12, MaxTokens: 512, Normalize: true}, "F32", "bert.", 0},
		{config{Hidden: 128, Layers: 2, Heads: 2, Intermediate: 130, Positions: 40, Epsilon: 1e-12, MaxTokens: 20, Normalize: true}, "F16", "", 0},
		{config{Hidden: 7, Layers: 2, Heads: 7, Intermediate: 9, Positions: 24, Epsilon: 1e-3, MaxTokens: 24}, "BF16", "bert.", 0},
		{config{Hidden: 32, Layers: 1, Heads: 1, Intermediate: 32, Positions: 700, Epsilon: 1e-12, MaxTokens: 700, MeanPooling: true}, "F32", "", 0},
		{config{Hidden: 448, Layers: 1, Heads: 14, Intermediate: 800, Positions: 40, Epsilon: 1e-12, MaxTokens: 40, MeanPooling: true, Normalize: true}, "F32", "", 0},
	} {
		t.Run(fmt.Sprintf("%d of %d heads, %s", c.Hidden, c.Heads, c.dtype), func(t *testing.T) {
			r := seeded(uint64(i))
			plain := newRandomModel(c.config, c.dtype, c.prefix, r)
			dir := writeFolder(t, plain.files(t, c.shift))
			texts := []string{"", "un", "able unable !", "a [MASK]" + strings.Repeat(" unaable!", 6), strings.Repeat("able ! unx un ", 40), strings.Repeat("able ! unx un ", 150)}
			var want [][]float64
			for _, k := range simd.Kernels() {
				m := loadFor(t, dir, k)
				for n, got := range encode(t, m, texts...) {
					tokens := m.tokenizer.Encode(texts[n], m.limit)
					if len(tokens) > min(c.MaxTokens, c.Positions) {
						t.Fatalf("%d tokens", len(tokens))
					}
					if len(want) == n {
						want = append(want, plain.encode(tokens))
					}
					for j := range got {
						if math.Abs(float64(got[j])-want[n][j]) > 1e-5 {
							t.Fatalf("%v, text %d, element %d: got %v, want %v", k, n, j, got[j], want[n][j])
						}
					}
				}
			}
			m := openFor(t, dir, Options{Precision: Int8, MiniLM: true})
			for n, got := range encode(t, m, texts...) {
				exact := make([]float32, len(got))
				for j := range exact {
					exact[j] = float32(want[n][j])
				}
				if c := cosine(got, exact); !(c >= 0.99) {
					t.Errorf("int8, text %d: cosine %.5f", n, c)
				}
			}
		})
	}
}
