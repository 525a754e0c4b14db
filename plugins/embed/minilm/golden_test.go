package minilm

import (
	"fmt"
	"math"
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/sdk"
)

// Vectors differ by rounding between processors, so their cosines are compared.
func TestGolden(t *testing.T) {
	stage, err := Stage().Open(t.Context(), sdk.Setup{}, fmt.Appendf(nil, `{"model": %q}`, modelDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := stage.(sdk.Embedder).Embed(t.Context(), sdk.RolePassage, []string{
		"my card was lost", "somebody stole my card", "what is my account's balance?", "Book a flight from Zürich to 東京, please!",
	})
	if err != nil {
		t.Fatal(err)
	}
	var cosines []float64
	for i, a := range vectors {
		for _, b := range vectors[i+1:] {
			sum := 0.0
			for k := range a {
				sum += float64(a[k]) * float64(b[k])
			}
			cosines = append(cosines, math.Round(sum*100)/100)
		}
	}
	golden.Compare(t, Stage(), cosines, "1 5b70a6e2c8d9fd6c")
}
