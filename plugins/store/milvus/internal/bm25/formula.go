package bm25

import (
	"math"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk/analyze"
)

// Formula is BM25 as Lucene has it and with exact lengths; package local gives
// the formula and its sources.
type Formula struct {
	Average     float64 // length of the texts that it weighs with
	base, slope float32
}

// NewFormula makes the formula for an average length.
func NewFormula(k1, b, average float64) Formula {
	f := Formula{Average: average, base: float32(k1 * (1 - b))}
	if average > 0 {
		f.slope = float32(k1 * b / average)
	}
	return f
}

// saturation is the part of a word's score that depends on the text.
func (f Formula) saturation(times uint32, length int) float32 {
	tf := float32(times)
	return tf / (tf + f.base + f.slope*float32(length))
}

// Document is the sparse vector of a text.
func (f Formula) Document(c Counts) entity.SparseEmbedding {
	if len(c.Words) == 0 {
		return sparse([]uint32{noWords}, []float32{1})
	}
	words := c.All()
	positions, values := make([]uint32, len(words)), make([]float32, len(words))
	for i, w := range words {
		positions[i], values[i] = w.Word, f.saturation(w.Times, c.Length)
	}
	return sparse(positions, values)
}

func sparse(positions []uint32, values []float32) entity.SparseEmbedding {
	v, err := entity.NewSliceSparseEmbedding(positions, values)
	if err != nil {
		panic(err) // positions and values are as many
	}
	return v
}

// Term is a word of a query with its idf.
type Term struct {
	Word uint32
	IDF  float32
}

// Terms are the words of a query, as often as it has them, but for those that no
// entry has. frequencies has for each word how many of the entries have it.
func Terms(a analyze.Analyzer, text string, entries int, frequencies map[uint32]uint32) []Term {
	var terms []Term
	for _, w := range a.Append(nil, text) {
		n := wordNumber(w)
		if df := float64(frequencies[n]); df > 0 {
			terms = append(terms, Term{n, float32(math.Log1p((float64(entries) - df + 0.5) / (df + 0.5)))})
		}
	}
	return terms
}

// Query is the sparse vector of a query.
func Query(terms []Term) entity.SparseEmbedding {
	at := map[uint32]int{}
	var positions []uint32
	var values []float32
	for _, t := range terms {
		i, ok := at[t.Word]
		if !ok {
			i = len(positions)
			at[t.Word] = i
			positions, values = append(positions, t.Word), append(values, 0)
		}
		values[i] += t.IDF
	}
	return sparse(positions, values)
}

// Score is the score of a text.
func (f Formula) Score(terms []Term, c Counts) float32 {
	var sum float32
	for _, t := range terms {
		if times := c.count(t.Word); times > 0 {
			sum += t.IDF * f.saturation(times, c.Length)
		}
	}
	return sum
}
