package encoder

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// recording holds the results of sentence-transformers for a model's texts and pairs; see
// testdata/parity.py.
type recording struct {
	Prompt  string    `json:"prompt"`
	IDs     [][]int32 `json:"ids"`
	Pairs   [][]int32 `json:"pairs"`
	Scores  []float64 `json:"scores"`
	Dim     int       `json:"dim"`
	Vectors string    `json:"vectors"`
}

// vector returns vector i.
func (r recording) vector(t *testing.T, i int) []float32 {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(r.Vectors)
	if err != nil || len(raw) != 2*r.Dim*len(r.IDs) {
		t.Fatalf("%d bytes of vectors, %v", len(raw), err)
	}
	v := make([]float32, r.Dim)
	for j := range v {
		v[j] = float16.Frombits(binary.LittleEndian.Uint16(raw[2*(i*r.Dim+j):])).Float32()
	}
	return v
}

// sampleTexts returns the recorded texts.
func sampleTexts(t *testing.T, n int) []string {
	t.Helper()
	var texts []string
	i := 0
	special := []string{"", "<pad> the <pad> house", "[PAD] the [SEP] house", "a <mask> </s> [MASK]", strings.Repeat("the red house ", 100)}
	lines(t, "texts.jsonl", func(line []byte) {
		var text string
		parts(t, append(append([]byte("["), line...), ']'), &text)
		if i%5 == 2 && len(texts) < n-len(special) {
			texts = append(texts, text)
		}
		i++
	})
	return append(texts, special...)
}

// parityDirs returns the folders of recorded models: in testdata, or where RACFLOW_PARITY says.
func parityDirs(t *testing.T) []string {
	t.Helper()
	root := os.Getenv("RACFLOW_PARITY")
	if root == "" {
		root = filepath.Join("testdata", "parity")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "expected.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no models in %s: %v", root, err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

// TestParity compares every architecture with sentence-transformers: ids, vectors and scores.
func TestParity(t *testing.T) {
	must.NoRace(t)
	for _, dir := range parityDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			must.Do(t, err)
			var want recording
			must.Do(t, json.Unmarshal(text, &want))
			texts := sampleTexts(t, len(want.IDs))
			kernels := simd.Kernels()
			if testing.Short() || os.Getenv("RACFLOW_PARITY") != "" {
				kernels = kernels[:1]
			}
			for _, k := range kernels {
				parityVectors(t, dir, k, texts, want)
				parityScores(t, dir, k, texts, want)
			}
		})
	}
}

func parityVectors(t *testing.T, dir string, k *simd.Kernel, texts []string, want recording) {
	t.Helper()
	e := openFor(t, dir, Options{Kernel: k})
	if query, passage := e.Prompts(); query != "" || passage != want.Prompt {
		t.Errorf("prompts %q and %q, want %q for passages", query, passage, want.Prompt)
	}
	vectors, err := e.EncodePrompt(t.Context(), want.Prompt, texts)
	must.Do(t, err)
	lowest := 1.0
	for i, got := range vectors {
		if ids := e.tokenizer.Encode(want.Prompt+texts[i], e.limit); !slices.Equal(ids, want.IDs[i]) {
			t.Errorf("text %d, %.60q: ids %v, want %v", i, texts[i], ids, want.IDs[i])
			continue
		}
		c := cosine(got, want.vector(t, i))
		if lowest = min(lowest, c); !(c >= 0.999999) {
			t.Errorf("%v, text %d, %.60q: cosine %.7f", k, i, texts[i], c)
		}
	}
	t.Logf("%v: lowest cosine of %d texts %.8f", k, len(texts), lowest)
}

func parityScores(t *testing.T, dir string, k *simd.Kernel, texts []string, want recording) {
	t.Helper()
	c, err := OpenCrossEncoder(dir, Options{Kernel: k})
	must.Do(t, err)
	pairs := make([]Pair, len(texts))
	for i := range texts {
		pairs[i] = Pair{texts[i], texts[(i+1)%len(texts)]}
		if ids, _ := c.tokenizer.EncodePair(pairs[i].Query, pairs[i].Passage, c.limit); !slices.Equal(ids, want.Pairs[i]) {
			t.Errorf("pair %d, %.40q: ids %v, want %v", i, pairs[i], ids, want.Pairs[i])
		}
	}
	scores, err := c.Score(t.Context(), pairs)
	must.Do(t, err)
	largest := 0.0
	for i, got := range scores {
		d := math.Abs(float64(got) - want.Scores[i])
		if largest = max(largest, d); !(d <= 1e-4) {
			t.Errorf("%v, pair %d, %.40q: score %.6f, want %.6f", k, i, pairs[i], got, want.Scores[i])
		}
	}
	t.Logf("%v: largest difference of %d scores %.1e", k, len(scores), largest)
}
