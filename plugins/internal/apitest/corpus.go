package apitest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// CorpusDimension is the dimension of the vectors of a Corpus.
const CorpusDimension = 384

// Corpus creates entries and queries for measuring stores, always the same, so that two stores can be measured on the
// same rows. Words have natural frequencies (Zipf), vectors are random. Each result depends on the earlier ones.
type Corpus struct {
	Random            *rand.Rand
	zipf              *rand.Zipf
	shortest, longest int
}

// NewCorpus creates a corpus whose texts have from shortest to longest words.
func NewCorpus(shortest, longest int) Corpus {
	r := rand.New(rand.NewPCG(1, 2))
	return Corpus{r, rand.NewZipf(r, 1.1, 5, 50_000), shortest, longest}
}

// Text returns a text with the given number of words, from a vocabulary of 50,000.
func (c Corpus) Text(words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "word%d ", c.zipf.Uint64())
	}
	return b.String()
}

// Vector returns a random vector.
func (c Corpus) Vector() []float32 {
	x := make([]float32, CorpusDimension)
	for i := range x {
		x[i] = float32(c.Random.NormFloat64())
	}
	return x
}

// entryID returns the id of entry number n.
func entryID(n int) string { return fmt.Sprintf("entry-%07d", n) }

// EntryLabel returns one of 150 labels.
func EntryLabel(n int) string { return fmt.Sprintf("label-%03d", n) }

// Entries returns n entries with the ids from first on. Each has a hash of 32 bytes, a label, and a page number below
// 1,000 as metadata.
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
