package encoder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// writeFolder writes files, by name, to a new folder.
func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// tinyFiles returns the files of testdata/tiny.
func tinyFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{
		"model.safetensors", "vocab.txt", "config.json", "modules.json",
		"sentence_bert_config.json", "tokenizer_config.json", "1_Pooling/config.json",
	} {
		text, err := os.ReadFile(filepath.Join("testdata/tiny", name))
		must.Do(t, err)
		files[name] = string(text)
	}
	return files
}

func TestLoadRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(files map[string]string)
		want   string
	}{
		"no weights": {func(f map[string]string) { delete(f, "model.safetensors") }, "model.safetensors"},
		"several files": {func(f map[string]string) {
			f["model.safetensors.index.json"] = "{}"
			delete(f, "model.safetensors")
		}, "weight_map lists 0 tensors"},
		"of PyTorch": {func(f map[string]string) {
			f["pytorch_model.bin"] = "x"
			delete(f, "model.safetensors")
		}, "save the model as model.safetensors"},
		"quantised": {func(f map[string]string) {
			f["model.safetensors"] = strings.ReplaceAll(f["model.safetensors"], `"F32"`, `"F8" `)
		}, "type F8 is not supported"},
		"no vocabulary": {func(f map[string]string) { delete(f, "vocab.txt") }, "vocab.txt"},
		"cut off":       {func(f map[string]string) { f["model.safetensors"] = f["model.safetensors"][:40000] }, "cut off"},
		"other sizes":   {func(f map[string]string) { delete(f, "config.json") }, "expected"},
		"more tokens":   {func(f map[string]string) { f["vocab.txt"] += "x\ny\nz\n" }, "the vocabulary has 25"},
		"more layers": {func(f map[string]string) {
			f["config.json"] = strings.Replace(f["config.json"], `"num_hidden_layers": 2`, `"num_hidden_layers": 3`, 1)
		}, "encoder.layer.2.attention"},
	} {
		t.Run(name, func(t *testing.T) {
			files := tinyFiles(t)
			c.change(files)
			_, err := Open(writeFolder(t, files), Options{MiniLM: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	fingerprint := func(change func(files map[string]string)) string {
		files := tinyFiles(t)
		change(files)
		m, err := Open(writeFolder(t, files), Options{MiniLM: true})
		must.Do(t, err)
		return m.Fingerprint()
	}
	same := fingerprint(func(map[string]string) {})
	if again := fingerprint(func(f map[string]string) { f["README.md"] = "x" }); again != same || len(same) != 64 {
		t.Errorf("fingerprint of the same model: %s, then %s", same, again)
	}
	for name, change := range map[string]func(f map[string]string){
		"weights":    func(f map[string]string) { f["model.safetensors"] += "x" },
		"vocabulary": func(f map[string]string) { f["vocab.txt"] = strings.Replace(f["vocab.txt"], "red", "tan", 1) },
		"pooling":    func(f map[string]string) { delete(f, "1_Pooling/config.json") },
		"limit":      func(f map[string]string) { f["sentence_bert_config.json"] = `{"max_seq_length":8}` },
	} {
		if fingerprint(change) == same {
			t.Errorf("fingerprint does not change with the %s", name)
		}
	}
}

// TestFingerprintStays compares fingerprints with those of earlier versions' knowledge.
func TestFingerprintStays(t *testing.T) {
	for name, c := range map[string]struct {
		dir  func(t testing.TB) string
		want string
	}{
		"MiniLM": {modelDir, "b81e39c3b31a7cf29b7567e43d341704539fcbe1579ecb0928e2e13b0971cac1"},
		"tiny":   {func(testing.TB) string { return "testdata/tiny" }, "6080ed193eb058b591fdffbb41cdd697d6d5f2a1f5fe5857e8c8b11cd0d45037"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := loadFor(t, c.dir(t), simd.Best()).Fingerprint(); got != c.want {
				t.Errorf("fingerprint %s, was %s: all knowledge would be embedded anew", got, c.want)
			}
		})
	}
}

func TestConfigNeeded(t *testing.T) {
	files := tinyFiles(t)
	delete(files, "config.json")
	if _, err := Open(writeFolder(t, files), Options{}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("error %v without config.json, want its name", err)
	}
}

// TestCased reads a vocabulary that is cased according to tokenizer_config.json.
func TestCased(t *testing.T) {
	files := tinyFiles(t)
	uncased, err := Open(writeFolder(t, files), Options{})
	must.Do(t, err)
	files["tokenizer_config.json"] = `{"do_lower_case":false}`
	cased, err := Open(writeFolder(t, files), Options{})
	must.Do(t, err)
	if cosine(encode(t, uncased, "The RED house")[0], encode(t, uncased, "the red house")[0]) < 0.9999 {
		t.Error("case makes a difference in an uncased model")
	}
	if cosine(encode(t, cased, "The RED house")[0], encode(t, cased, "the red house")[0]) > 0.9999 {
		t.Error("case makes no difference in a cased model")
	}
	if cased.Fingerprint() == uncased.Fingerprint() {
		t.Error("both have the same fingerprint")
	}
	files["sentence_bert_config.json"] = `{"do_lower_case":true}`
	if _, err := Open(writeFolder(t, files), Options{}); err == nil || !strings.Contains(err.Error(), "do_lower_case") {
		t.Errorf("error %v of lower-casing before a cased tokenizer", err)
	}
}
