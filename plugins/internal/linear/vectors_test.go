package linear_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// TestUnitsMakeTheSameVectors: vectors in int8 are the same to the bit with every unit. The same kernel computes
// everything but the products.
func TestUnitsMakeTheSameVectors(t *testing.T) {
	data := filepath.Join("..", "encoder", "testdata")
	var texts []string
	file, err := os.Open(filepath.Join(data, "texts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan() && len(texts) < 12; {
		var text string
		if err := json.Unmarshal(s.Bytes(), &text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	folders := []string{filepath.Join(data, "tiny"), filepath.Join(data, "parity", "bert"), filepath.Join(data, "parity", "modernbert")}
	if dir, err := sdk.ModelDir("minilm"); err == nil && !testing.Short() {
		if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err == nil {
			folders = append(folders, dir)
		}
	}
	for _, dir := range folders {
		for _, kernel := range simd.Kernels() {
			vectors := map[string][][]float32{}
			linear.EachUnit(t, kernel, func(name string, k *simd.Kernel) {
				e, err := encoder.Open(dir, encoder.Options{Precision: encoder.Int8, Kernel: k, MiniLM: true})
				if err != nil {
					t.Fatal(err)
				}
				if vectors[name], err = e.Encode(t.Context(), texts); err != nil {
					t.Fatal(err)
				}
			})
			for name, got := range vectors {
				for i, want := range vectors["portable"] {
					if !slices.Equal(got[i], want) {
						t.Errorf("%s, %v: text %d has another vector by %s than by plain Go", filepath.Base(dir), kernel, i, name)
					}
				}
			}
		}
	}
}
