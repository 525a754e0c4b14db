package encoder

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestDimensions keeps only the first dimensions, with length 1 if the whole vector has length 1.
func TestDimensions(t *testing.T) {
	dir := filepath.Join("testdata", "parity", "bert")
	texts := []string{"", "where is my parcel?", "the red house"}
	whole := encode(t, openFor(t, dir, Options{}), texts...)
	e := openFor(t, dir, Options{Dimensions: 8})
	if e.Dim() != 8 {
		t.Errorf("%d dimensions", e.Dim())
	}
	for i, v := range encode(t, e, texts...) {
		length := 0.0
		for _, x := range v {
			length += float64(x) * float64(x)
		}
		if len(v) != 8 || math.Abs(length-1) > 1e-5 || cosine(v, whole[i][:8]) < 1-1e-6 {
			t.Errorf("text %d: %v, want the beginning of %v", i, v, whole[i])
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"33 dimensions of a model that has 32": {Dimensions: 33},
		"-1 dimensions":                        {Dimensions: -1},
		"no room":                              {MaxTokens: 1},
		`"int4"`:                               {Precision: "int4"},
	} {
		if _, err := Open(filepath.Join("testdata", "parity", "bert"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

// TestFingerprintOfOptions opens models with options and files that give other vectors.
func TestFingerprintOfOptions(t *testing.T) {
	seen := map[string]string{}
	add := func(name, dir string, o Options) {
		e := openFor(t, dir, o)
		if other, twice := seen[e.Fingerprint()]; twice {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[e.Fingerprint()] = name
	}
	for _, dir := range []string{filepath.Join("testdata", "parity", "distilbert"), "testdata/tiny"} {
		for _, o := range []Options{{}, {Precision: Int8}, {Dimensions: 8}, {MaxTokens: 8}} {
			add(fmt.Sprintf("%s %+v", dir, o), dir, o)
		}
	}
	// The tokenizer, the dense layer and the pooling count too.
	for name, change := range map[string][3]string{
		"tokenizer":  {"tokenizer.json", `"lowercase":true`, `"lowercase":false`},
		"activation": {"2_Dense/config.json", "Tanh", "ReLU"},
		"pooling":    {"1_Pooling/config.json", `"cls"`, `"mean"`},
	} {
		dir := t.TempDir()
		must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "parity", "distilbert"))))
		path := filepath.Join(dir, change[0])
		text, err := os.ReadFile(path)
		must.Do(t, err)
		compact := strings.ReplaceAll(string(text), `": `, `":`)
		changed := strings.Replace(compact, change[1], change[2], 1)
		if changed == compact {
			t.Fatalf("%s has no %s", change[0], change[1])
		}
		must.Do(t, os.WriteFile(path, []byte(changed), 0o644))
		add(name, dir, Options{})
	}
}

// TestFirstNames reads layer norms under the names of the first checkpoints.
func TestFirstNames(t *testing.T) {
	c := config{Hidden: 8, Layers: 1, Heads: 2, Intermediate: 8, Positions: 16, Epsilon: 1e-12, MaxTokens: 16}
	m := newRandomModel(c, "F32", "", seeded(2))
	want := encode(t, openFor(t, writeFolder(t, m.files(t, 0)), Options{}), "able")
	for name, values := range m.tensors {
		if renamed := strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(name); renamed != name {
			m.tensors[renamed], m.shapes[renamed] = values, m.shapes[name]
			delete(m.tensors, name)
		}
	}
	got := encode(t, openFor(t, writeFolder(t, m.files(t, 0)), Options{}), "able")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPromptCounts compares the mean without the prompt's tokens with the mean including them.
func TestPromptCounts(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "parity", "modernbert"))))
	embed := func(include bool) []float32 {
		text, err := json.Marshal(map[string]any{"pooling_mode": "mean", "include_prompt": include})
		must.Do(t, err)
		must.Do(t, os.WriteFile(filepath.Join(dir, "1_Pooling", "config.json"), text, 0o644))
		e := openFor(t, dir, Options{})
		vectors, err := e.EncodePrompt(t.Context(), "search_document: ", []string{"the red house"})
		must.Do(t, err)
		if include {
			if plain := encode(t, e, "search_document: the red house")[0]; cosine(plain, vectors[0]) < 1-1e-6 {
				t.Error("a prompt is not what goes before the text")
			}
		}
		return vectors[0]
	}
	if c := cosine(embed(true), embed(false)); c > 0.999 {
		t.Errorf("cosine %.5f: the prompt makes no difference in the mean", c)
	}
}
