package apitest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// CorpusDimension is that of the vectors of a Corpus.
const CorpusDimension = 384

// Corpus makes entries and queries to measure stores with, the same ones each time, so that two stores can be measured on
// the same rows. Words occur as often as words do (Zipf), vectors are random. What it makes next depends on what it made before.
type Corpus struct {
	Random            *rand.Rand
	zipf              *rand.Zipf
	shortest, longest int
}

// NewCorpus makes a corpus whose texts have from shortest to longest words.
func NewCorpus(shortest, longest int) Corpus {
	r := rand.New(rand.NewPCG(1, 2))
	return Corpus{r, rand.NewZipf(r, 1.1, 5, 50_000), shortest, longest}
}

// Text is a text of so many words, of 50,000 that there are.
func (c Corpus) Text(words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "word%d ", c.zipf.Uint64())
	}
	return b.String()
}

// Vector is a vector in any direction.
func (c Corpus) Vector() []float32 {
	x := make([]float32, CorpusDimension)
	for i := range x {
		x[i] = float32(c.Random.NormFloat64())
	}
	return x
}

// entryID is the id of entry number n.
func entryID(n int) string { return fmt.Sprintf("entry-%07d", n) }

// EntryLabel is one of 150.
func EntryLabel(n int) string { return fmt.Sprintf("label-%03d", n) }

// Entries are n entries with the ids from first on, each with a hash of 32
// bytes, a label and a page number below 1,000 as metadata.
func (c Corpus) Entries(first, n int) []sdk.Entry {
	batch := make([]sdk.Entry, n)
	for i := range batch {
		hash := make([]byte, 32)
		for j := range hash {
			hash[j] = byte(c.Random.Uint32())
		}
		batch[i] = sdk.Entry{
			ID: entryID(first + i), Text: c.Text(c.shortest + c.Random.IntN(c.longest-c.shortest+1)), Label: EntryLabel(c.Random.IntN(150)),
			Hash: hash, Vector: c.Vector(), Meta: sdk.Meta{"page": float64(c.Random.IntN(1000))},
		}
	}
	return batch
}
