package minilm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files, by name, to a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConfigDefaults(t *testing.T) {
	got, err := readConfig(t.TempDir())
	if err != nil || got != miniLM() {
		t.Errorf("empty folder: got %+v, %v", got, err)
	}
	if got, err = readConfig(modelDir(t)); err != nil || got != miniLM() {
		t.Errorf("MiniLM's own files: got %+v, %v", got, err)
	}
}

func TestConfigTiny(t *testing.T) {
	want := config{Hidden: 24, Layers: 2, Heads: 3, Intermediate: 40, Positions: 16, Epsilon: 1e-6, MaxTokens: 12}
	if got, err := readConfig("testdata/tiny"); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestConfigFields(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		set        func(*config)
	}{
		"limit":          {"sentence_bert_config.json", `{"max_seq_length":128}`, func(c *config) { c.MaxTokens = 128 }},
		"no limit given": {"sentence_bert_config.json", `{"max_seq_length":null}`, func(*config) {}},
		"no limit":       {"tokenizer_config.json", `{"model_max_length":1000000000000000019884624838656}`, func(c *config) { c.MaxTokens = 512 }},
		"cls":            {"1_Pooling/config.json", `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`, func(c *config) { c.MeanPooling = false }},
		"mean":           {"1_Pooling/config.json", `{"pooling_mode_mean_tokens":true}`, func(*config) {}},
		"not normalised": {"modules.json", `[{"type":"sentence_transformers.models.Transformer"}]`, func(c *config) { c.Normalize = false }},
	} {
		t.Run(name, func(t *testing.T) {
			want := miniLM()
			c.set(&want)
			if got, err := readConfig(folder(t, map[string]string{c.file: c.text})); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestConfigRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"broken":       {"config.json", `{`, "config.json"},
		"architecture": {"config.json", `{"model_type":"mpnet"}`, `model_type is "mpnet"`},
		"activation":   {"config.json", `{"hidden_act":"relu"}`, `hidden_act is "relu"`},
		"positions":    {"config.json", `{"position_embedding_type":"relative_key"}`, "relative_key"},
		"heads":        {"config.json", `{"num_attention_heads":7}`, "7 heads"},
		"size":         {"config.json", `{"num_attention_heads":0}`, "zero"},
		"limit":        {"sentence_bert_config.json", `{"max_seq_length":1}`, "no room"},
		"cased":        {"tokenizer_config.json", `{"do_lower_case":false}`, "uncased"},
		"accents":      {"tokenizer_config.json", `{"strip_accents":false}`, "uncased"},
		"pooling":      {"1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`, "pooling by max"},
		"two poolings": {"1_Pooling/config.json", `{"pooling_mode":["mean","max"]}`, "pooling by [mean max]"},
		"dense":        {"modules.json", `[{"type":"sentence_transformers.models.Dense"}]`, "Dense"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readConfig(folder(t, map[string]string{c.file: c.text}))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.FromSlash(c.file)) {
				t.Errorf("error %v, want the file's name and %q", err, c.want)
			}
		})
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
		}, "save the model as one"},
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
			_, err := Load(folder(t, files))
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
		m, err := Load(folder(t, files))
		if err != nil {
			t.Fatal(err)
		}
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
