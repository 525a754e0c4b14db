package enginetest

import (
	"context"
	"math"

	"github.com/racflow/racflow/sdk"
)

// Alphabet is an embedder that learns nothing: a text is the direction of how often it has each
// letter.
func Alphabet() sdk.Stage {
	return sdk.EmbedStage("alphabet", "How often a text has each letter.", func(context.Context, sdk.Setup, none) (sdk.Embedder, error) { return alphabet{}, nil })
}

type alphabet struct{}

func (alphabet) Dimension() int { return 26 }

func (alphabet) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = AlphabetOf(text)
	}
	return all, nil
}

// AlphabetOf is the vector that Alphabet makes of a text.
func AlphabetOf(text string) []float32 {
	v, square := make([]float32, 26), 0.0
	for _, r := range text {
		if 'a' <= r && r <= 'z' {
			v[r-'a']++
		}
	}
	for _, x := range v {
		square += float64(x * x)
	}
	for i := range v {
		v[i] /= float32(max(math.Sqrt(square), math.SmallestNonzeroFloat32))
	}
	return v
}
