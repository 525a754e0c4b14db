package enginetest

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

const dimension = 256

type none struct{}

// Hashing is an embedder that learns how many texts have each word: TF-IDF vectors of
// hashed words.
func Hashing() sdk.Stage {
	return sdk.EmbedStage("hashing", "Hashed words, rare ones counting more.", func(_ context.Context, setup sdk.Setup, _ none) (sdk.Embedder, error) {
		e := &hashing{Words: map[string]int{}}
		if setup.State == nil {
			return e, nil
		}
		return e, json.Unmarshal(setup.State, e)
	})
}

type hashing struct {
	Texts int
	Words map[string]int // in how many texts they are
}

func (*hashing) Dimension() int { return dimension }

func (e *hashing) Fit(_ context.Context, texts []string) error {
	for _, text := range texts {
		e.Texts++
		for word := range wordsOf(text, "standard") {
			e.Words[word]++
		}
	}
	return nil
}

func (e *hashing) State() ([]byte, error) { return json.Marshal(e) }

func (e *hashing) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v, square := make([]float32, dimension), 0.0
		words := wordsOf(text, "standard")
		for _, word := range slices.Sorted(maps.Keys(words)) { // the same sum each time
			h := fnv.New32a()
			h.Write([]byte(word))
			v[h.Sum32()%dimension] += float32(words[word]) * float32(1+math.Log(float64(e.Texts+1)/float64(e.Words[word]+1)))
		}
		for _, x := range v {
			square += float64(x) * float64(x)
		}
		for j := range v {
			v[j] /= float32(max(math.Sqrt(square), math.SmallestNonzeroFloat32))
		}
		vectors[i] = v
	}
	return vectors, nil
}

// wordsOf counts the words of a text.
func wordsOf(text, analyzer string) map[string]int {
	a, err := analyze.Named(analyzer)
	if err != nil {
		return nil
	}
	words := map[string]int{}
	for _, word := range a.Append(nil, text) {
		words[word]++
	}
	return words
}
