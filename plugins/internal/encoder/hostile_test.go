package encoder

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// inHeader returns weights with old replaced by text in the header. The length of the header and the
// content of the tensors stay.
func inHeader(t *testing.T, weights, old, text string) string {
	t.Helper()
	n := 8 + int(binary.LittleEndian.Uint64([]byte(weights)))
	header := strings.Replace(weights[8:n], old, text, 1)
	if header == weights[8:n] || len(header) > n-8 {
		t.Fatalf("header %q", weights[8:n])
	}
	return weights[:8] + header + strings.Repeat(" ", n-8-len(header)) + weights[n:]
}

// setNumber changes the last number of a 32-bit tensor.
func setNumber(t *testing.T, weights, tensor string, v float64) string {
	t.Helper()
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	n := 8 + int(binary.LittleEndian.Uint64([]byte(weights)))
	must.Do(t, json.Unmarshal([]byte(weights[8:n]), &header))
	text := []byte(weights)
	binary.LittleEndian.PutUint32(text[n+header[tensor].Offsets[1]-4:], math.Float32bits(float32(v)))
	return string(text)
}

// TestHostile opens folders that are damaged or malicious. Each gives an error that says what is wrong where, and
// takes little memory.
func TestHostile(t *testing.T) {
	const weights = "model.safetensors"
	config := func(old, text string) func(t *testing.T, f map[string]string) {
		return func(t *testing.T, f map[string]string) {
			if !strings.Contains(f["config.json"], old) {
				t.Fatalf("config.json has no %q", old)
			}
			f["config.json"] = strings.Replace(f["config.json"], old, text, 1)
		}
	}
	header := func(old, text string) func(t *testing.T, f map[string]string) {
		return func(t *testing.T, f map[string]string) { f[weights] = inHeader(t, f[weights], old, text) }
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, f map[string]string)
		want   string
	}{
		"turned matrix": {header(`"encoder.layer.1.intermediate.dense.weight":{"dtype":"F32","shape":[40,24]`, `"encoder.layer.1.intermediate.dense.weight":{"dtype":"F32","shape":[24,40]`),
			`tensor "encoder.layer.1.intermediate.dense.weight": shape [24 40], expected [40 24]`},
		"missing tensor":  {header(`"encoder.layer.0.output.dense.bias"`, `"encoder.layer.0.output.dense.none"`), `tensor "encoder.layer.0.output.dense.bias" is missing`},
		"flat embeddings": {header(`"shape":[24,24]`, `"shape":[576]`), `shape [576], expected [any 24]`},
		"two encoders":    {header(`"encoder.layer.0.attention.output.dense.bias"`, `"x.embeddings.word_embeddings.weight"`), `several encoders in one model`},
		"not a number": {func(t *testing.T, f map[string]string) {
			f[weights] = setNumber(t, f[weights], "encoder.layer.1.output.dense.weight", math.NaN())
		}, `tensor "encoder.layer.1.output.dense.weight": number 959 is NaN`},
		"infinite embeddings": {func(t *testing.T, f map[string]string) {
			f[weights] = setNumber(t, f[weights], "embeddings.word_embeddings.weight", math.Inf(-1))
		}, `tensor "embeddings.word_embeddings.weight": number 575 is -Inf`},
		"other width":       {config(`"hidden_size": 24`, `"hidden_size": 48`), "expected [any 48]"},
		"huge width":        {config(`"hidden_size": 24`, `"hidden_size": 1048575`), "expected [any 1048575]"},
		"absurd width":      {config(`"hidden_size": 24`, `"hidden_size": 900719925474099`), "at most"},
		"huge inside":       {config(`"intermediate_size": 40`, `"intermediate_size": 1048576`), "1048576]"},
		"many layers":       {config(`"num_hidden_layers": 2`, `"num_hidden_layers": 1048576`), `tensor "encoder.layer.2.`},
		"many positions":    {config(`"max_position_embeddings": 16`, `"max_position_embeddings": 65536`), "expected [65536 24]"},
		"unknown family":    {config(`"model_type": "bert"`, `"model_type": "t5"`), `model_type is "t5"`},
		"no layers like it": {config(`"model_type": "bert"`, `"model_type": "mpnet"`), `tensor "encoder.layer.0.attention.attn.`},
		"a folder for a file": {func(t *testing.T, f map[string]string) {
			delete(f, "config.json")
			f["config.json/x"] = ""
		}, "is not a file"},
		"path": {func(t *testing.T, f map[string]string) {
			delete(f, weights)
			f[weights+".index.json"] = `{"weight_map":{"embeddings.word_embeddings.weight":"../../model.safetensors"}}`
		}, "../../model.safetensors"},
		"broken tokenizer": {func(t *testing.T, f map[string]string) { f["tokenizer.json"] = `{"model":{"type":"WordLevel"}}` }, "tokenizer.json"},
	} {
		t.Run(name, func(t *testing.T) {
			files := tinyFiles(t)
			c.change(t, files)
			dir := writeFolder(t, files)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(dir, Options{})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want the folder's name and %q", err, c.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
}

// TestNotFinite: finite weights with infinite vectors.
func TestNotFinite(t *testing.T) {
	files := tinyFiles(t)
	files["model.safetensors"] = setNumber(t, files["model.safetensors"], "encoder.layer.1.output.LayerNorm.weight", 3e38)
	e, err := Open(writeFolder(t, files), Options{})
	must.Do(t, err)
	if _, err := e.Encode(t.Context(), []string{"the red house"}); err == nil || !strings.Contains(err.Error(), "not finite") {
		t.Errorf("error %v, want one of numbers that are not finite", err)
	}
}

// TestKinds opens encoders as cross-encoders, and the reverse.
func TestKinds(t *testing.T) {
	if _, err := OpenCrossEncoder("testdata/tiny", Options{}); err == nil || !strings.Contains(err.Error(), "no cross-encoder") {
		t.Errorf("an encoder as a cross-encoder: error %v", err)
	}
	files := tinyFiles(t)
	files["config.json"] = strings.Replace(files["config.json"], `"BertModel"`, `"BertForSequenceClassification"`, 1)
	delete(files, "modules.json")
	dir := writeFolder(t, files)
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is a cross-encoder (BertForSequenceClassification)") {
		t.Errorf("a cross-encoder as an encoder: error %v", err)
	}
	files["config.json"] = strings.Replace(files["config.json"], `"model_type"`, `"num_labels": 1, "model_type"`, 1)
	if _, err := OpenCrossEncoder(writeFolder(t, files), Options{}); err == nil || !strings.Contains(err.Error(), `tensor "classifier.bias" is missing`) {
		t.Errorf("a cross-encoder without its head: error %v", err)
	}
}

// TestLongText encodes a text of 8,192 tokens: memory must not grow with the square of its length,
// which would be 268 MB of scores.
func TestLongText(t *testing.T) {
	c := config{Hidden: 16, Layers: 1, Heads: 1, Intermediate: 16, Positions: 8192, Epsilon: 1e-12, MaxTokens: 8192, MeanPooling: true}
	e := openFor(t, writeFolder(t, newRandomModel(c, "F32", "", seeded(1)).files(t, 0)), Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	encode(t, e, strings.Repeat("able ! unx un ", 4000))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 40<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// TestMemory measures the memory of a model in a separate process: at most 1.3 times its weights,
// also during loading, plus what every process takes.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("it writes a large file, and reads /proc")
	}
	const processes = 32 << 20 // the memory of a Go process, and of the work on some texts
	c := config{Hidden: 384, Layers: 6, Heads: 12, Intermediate: 1536, Positions: 64, Epsilon: 1e-12, MaxTokens: 64}
	for _, dtype := range []string{"F32", "BF16"} {
		t.Run(dtype, func(t *testing.T) {
			m := newRandomModel(c, dtype, "", seeded(1))
			weights := 0
			for _, values := range m.tensors {
				weights += 4 * len(values)
			}
			dir := writeFolder(t, m.files(t, 0))
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryChild$", "-test.v")
			run.Env = append(os.Environ(), "RACFLOW_TEST_MODEL="+dir)
			said, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			peak := must.Size(t, string(said), "VmHWM")
			t.Logf("%d MB of weights, %d MB at most", weights>>20, peak>>20)
			if limit := weights/10*13 + processes; peak > limit {
				t.Errorf("%d MB of weights take %d MB, at most %d wanted", weights>>20, peak>>20, limit>>20)
			}
		})
	}
}

// TestMemoryChild is the process that TestMemory measures.
func TestMemoryChild(t *testing.T) {
	dir := os.Getenv("RACFLOW_TEST_MODEL")
	if dir == "" {
		t.Skip("it is run by TestMemory")
	}
	e := openFor(t, dir, Options{})
	encode(t, e, "able ! unx un", strings.Repeat("able ", 100))
	fmt.Println(must.Status(t))
}
