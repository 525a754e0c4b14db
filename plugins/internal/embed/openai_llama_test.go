package embed

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

// TestRealServer asks llama.cpp, as .ci/llm with starts it.
func TestRealServer(t *testing.T) {
	address := os.Getenv("RACFLOW_TEST_LLM")
	if address == "" {
		t.Skip("RACFLOW_TEST_LLM is not set; .ci/llm with go test ... sets it")
	}
	host := &apitest.Host{}
	e, err := openAt(t, address, host, t.TempDir(), `, "max_inputs": 3`)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"I lost my card", "what is the weather", "", "where is my PIN", "Größe", "I lost my card"}
	vectors, err := e.Embed(t.Context(), sdk.RolePassage, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if len(v) != e.Dimension() || math.Abs(sum-1) > 1e-5 && i != 2 || i == 2 && sum != 0 {
			t.Errorf("vector of %q: %d numbers, squared norm %v", texts[i], len(v), sum)
		}
	}
	if !slices.Equal(vectors[0], vectors[5]) || slices.Equal(vectors[0], vectors[1]) {
		t.Error("vectors and texts do not belong together")
	}
	// The first request asks for the dimension.
	if !e.base64.Load() || len(host.Calls()) != 3 || host.Spent(t).InputTokens == 0 {
		t.Errorf("%d requests, base64 %v, spent %+v", len(host.Calls()), e.base64.Load(), host.Spent(t))
	}
	// As numbers the vectors are the same. Each text goes alone, and twice: here
	// llama.cpp's vector of a text depends on what else it works on.
	plain, err := openAt(t, address, &apitest.Host{}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	plain.numbers.Store(true)
	for _, text := range []string{"I lost my card", "Größe"} {
		alone, err := e.Embed(t.Context(), sdk.RoleQuery, []string{text + "!"})
		again, err2 := plain.Embed(t.Context(), sdk.RoleQuery, []string{text + "!"})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for j, x := range alone[0] {
			if math.Abs(float64(x-again[0][j])) > 1e-3 {
				t.Fatalf("vector of %q is %v at %d as base64, %v as a number", text, x, j, again[0][j])
			}
		}
	}
}
