package attached

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// dimension is that of all vectors.
const dimension = 8

// count is how many rows there are.
const count = 200

// words are in the texts of the rows, row i having the words i and i+1.
var words = strings.Fields("walrus lantern meadow copper violin harbour pepper saddle glacier thimble " +
	"orchard magnet puzzle ribbon tunnel basket canyon drummer feather goblin")

// rows are what a collection under test holds. Their ids are decimal numbers, so that they fit keys
// of either type, every row has every key of the metadata, and no number needs more than a float32.
// The vectors of the first ones by id have the norm 1, the others any.
func rows(unit int) []sdk.Entry {
	random := rand.New(rand.NewPCG(11, 23))
	labels := []string{"refund", "parcel", "", "größe"}
	languages := []string{"en", "de", "日本語", ""}
	all := make([]sdk.Entry, count)
	for i := range all {
		all[i] = sdk.Entry{
			ID:      strconv.Itoa(1000 + 37*i%count),
			Text:    fmt.Sprintf("%s %s\n%d \"quoted\" ünï 日本", words[i%len(words)], words[(i+1)%len(words)], i),
			Context: fmt.Sprint("title ", i),
			Label:   labels[i%len(labels)],
			Meta: sdk.Meta{
				"lang": languages[i/4%len(languages)], "year": float64(1990 + i%40), "price": float64(i%17)/4 - 1, "open": i%3 == 0,
			},
			Vector: vector(random),
		}
		if 37*i%count >= unit {
			scale := float32(math.Exp2(float64(random.IntN(8) - 4)))
			for d := range all[i].Vector {
				all[i].Vector[d] *= scale
			}
		}
	}
	return all
}

// vector is a random one of norm 1.
func vector(random *rand.Rand) []float32 {
	v := make([]float32, dimension)
	for d := range v {
		v[d] = float32(random.NormFloat64())
	}
	n := float32(norm(v))
	for d := range v {
		v[d] /= n
	}
	return v
}

func norm(v []float32) float64 { return math.Sqrt(dot(v, v)) }

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func cosine(a, b []float32) float64 { return dot(a, b) / (norm(a) * norm(b)) }
