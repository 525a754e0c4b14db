package encoder

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/x448/float16"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// modelDir returns the folder of MiniLM, or skips the test if it is not installed.
func modelDir(t testing.TB) string { return modelNamed(t, "minilm") }

// modelNamed is modelDir for a model of any name.
func modelNamed(t testing.TB, name string) string {
	t.Helper()
	models := os.Getenv("RACFLOW_MODELS")
	if models == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("no model: set RACFLOW_MODELS to the folder that holds %s/", name)
		}
		models = filepath.Join(cache, "racflow", "models")
	}
	dir := filepath.Join(models, name)
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Skipf("no model in %s: put it there or set RACFLOW_MODELS", dir)
	}
	return dir
}

func loadFor(t testing.TB, dir string, k *simd.Kernel) *Encoder {
	t.Helper()
	return openFor(t, dir, Options{Kernel: k, MiniLM: true})
}

func openFor(t testing.TB, dir string, o Options) *Encoder {
	t.Helper()
	m, err := Open(dir, o)
	must.Do(t, err)
	return m
}

func encode(t testing.TB, m *Encoder, texts ...string) [][]float32 {
	t.Helper()
	vectors, err := m.Encode(t.Context(), texts)
	must.Do(t, err)
	return vectors
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// TestOriginal compares with sentence-transformers' vectors: of MiniLM for all texts, of all-mpnet-base-v2 for every
// 20th.
func TestOriginal(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for long, as TestTinyModel does with a small one")
	}
	must.NoRace(t)
	var texts []string
	lines(t, "texts.jsonl", func(line []byte) {
		var text string
		parts(t, append(append([]byte("["), line...), ']'), &text)
		texts = append(texts, text)
	})
	for _, test := range []struct {
		model, vectors string
		every          int
		precision      Precision
		lowest         float64
	}{
		{"minilm", "vectors.f16", 1, Float32, 0.9999},
		{"minilm", "vectors.f16", 1, Int8, 0.993},
		{"all-mpnet-base-v2", "mpnet.f16", 20, Float32, 0.9999},
		{"all-mpnet-base-v2", "mpnet.f16", 20, Int8, 0.96},
	} {
		t.Run(test.model+" "+string(test.precision), func(t *testing.T) {
			m := openFor(t, modelNamed(t, test.model), Options{Precision: test.precision})
			raw, err := os.ReadFile(filepath.Join("testdata", test.vectors))
			must.Do(t, err)
			var some []string
			for i := 0; i < len(texts); i += test.every {
				some = append(some, texts[i])
			}
			if len(texts) != 1000 || len(raw) != 2*len(some)*m.Dim() {
				t.Fatalf("%d texts, %d bytes of vectors", len(texts), len(raw))
			}
			worst, sum := 1.0, 0.0
			want := make([]float32, m.Dim())
			for i, got := range encode(t, m, some...) {
				for j := range want {
					want[j] = float16.Frombits(binary.LittleEndian.Uint16(raw[2*(i*len(want)+j):])).Float32()
				}
				c := cosine(got, want)
				if worst = min(worst, c); !(c >= test.lowest) {
					t.Errorf("text %d, %.60q: cosine %.6f", i, some[i], c)
				}
				sum += c
			}
			t.Logf("cosine: lowest %.8f, mean %.8f", worst, sum/float64(len(some)))
		})
	}
}

// TestTinyModel compares float32 with sentence-transformers, and int8 with recorded results of plain Go on amd64.
func TestTinyModel(t *testing.T) {
	for p, file := range map[Precision]string{Float32: "tiny/vectors.jsonl", Int8: "tiny/int8.jsonl"} {
		for _, k := range simd.Kernels() {
			t.Run(fmt.Sprint(p, " ", k), func(t *testing.T) {
				m := openFor(t, "testdata/tiny", Options{Kernel: k, Precision: p})
				lines(t, file, func(line []byte) {
					var text string
					var want []float32
					parts(t, line, &text, &want)
					got := encode(t, m, text)[0]
					for i := range want {
						if math.Abs(float64(got[i]-want[i])) > 1e-5 {
							t.Fatalf("%q: got %v, want %v", text, got, want)
						}
					}
				})
			})
		}
	}
}

// TestKernelsAgree: in float32, kernels differ by rounding only. In int8 this rounding sometimes changes a code, so
// vectors differ about as much as from float32.
func TestKernelsAgree(t *testing.T) {
	must.NoRace(t)
	dir := modelDir(t)
	texts := []string{"", "the quick brown fox", "漢字 and emoji 🙂", fmt.Sprint(make([]int, 40))}
	for _, p := range []Precision{Float32, Int8} {
		want := encode(t, openFor(t, dir, Options{Kernel: simd.Portable(), Precision: p, MiniLM: true}), texts...)
		for _, k := range simd.Kernels() {
			for i, got := range encode(t, openFor(t, dir, Options{Kernel: k, Precision: p, MiniLM: true}), texts...) {
				if c := cosine(got, want[i]); p == Int8 && c < 0.993 {
					t.Errorf("%v, text %d in int8: cosine %.5f with portable", k, i, c)
				}
				for j := range got {
					if p == Float32 && math.Abs(float64(got[j]-want[i][j])) > 2e-6 {
						t.Fatalf("%v, text %d, element %d: got %v, portable %v", k, i, j, got[j], want[i][j])
					}
				}
			}
		}
	}
}

func TestEncodeNothing(t *testing.T) {
	if got := encode(t, loadFor(t, "testdata/tiny", simd.Best())); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestEncodeBatches checks that a vector does not depend on the other texts of its batch, with several goroutines on
// one model.
func TestEncodeBatches(t *testing.T) {
	m := loadFor(t, "testdata/tiny", simd.Best())
	kinds := []string{"", "a", "the red house", "unable!", "a b c a b c a b c a b c"}
	alone := make([][]float32, len(kinds))
	for i, text := range kinds {
		alone[i] = encode(t, m, text)[0]
	}
	texts := make([]string, 700)
	for i := range texts {
		texts[i] = kinds[i%len(kinds)]
	}
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			vectors, err := m.Encode(t.Context(), texts)
			if err != nil {
				t.Error(err)
			}
			for i, v := range vectors {
				if cosine(v, alone[i%len(kinds)]) < 1-1e-6 {
					t.Errorf("text %d differs in a batch", i)
				}
			}
		})
	}
	callers.Wait()
}

func TestEncodeCancelled(t *testing.T) {
	m := loadFor(t, "testdata/tiny", simd.Best())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := m.Encode(ctx, []string{"a", "b"}); !errors.Is(err, context.Canceled) || v != nil {
		t.Errorf("got %v, %v", v, err)
	}
}

// lines calls f with every line of a file in testdata.
func lines(t testing.TB, name string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	must.Do(t, err)
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	must.Do(t, s.Err())
}

// parts decodes a JSON array into the values that vs point to.
func parts(t testing.TB, line []byte, vs ...any) {
	t.Helper()
	if err := json.Unmarshal(line, &vs); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

const smallVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n##a\n!\nable\n"
