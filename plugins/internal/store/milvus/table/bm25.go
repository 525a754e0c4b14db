package table

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk/support"
)

// This file turns texts into what Milvus searches words with. A row's sparse
// vector has for each of its words the part of BM25 that depends on the row, a
// query's the idf, and their inner product is the score. A word's dimension is a
// hash of 32 bits, so that no dictionary is needed: among a million words about
// one in four thousand shares its dimension with another.
//
// The package knows neither rows nor collections: who calls keeps the statistics.

// noWords is the dimension that a text without words has, because a server
// takes no empty vector. No word and no query has it.
const noWords = 0

// lastWord is the largest dimension of a sparse vector.
const lastWord = math.MaxUint32 - 2

// wordNumber is the dimension of a word.
func wordNumber(word string) uint32 {
	h := fnv.New64a()
	h.Write([]byte(word))
	sum := h.Sum64()
	return uint32((sum^sum>>32)%lastWord) + 1
}

// CountOf is how often a word occurs in a text.
type CountOf struct{ Word, Times uint32 }

// Counts are the words of one text.
type Counts struct {
	Length int       // words in all
	Words  []CountOf // each word once, rising
}

// CountWords analyses the context and the text of an entry, one after the other:
// between them would stand a newline, which separates words under every analyzer.
func CountWords(a support.Analyzer, context, text string) Counts {
	words := a.Append(a.Append(nil, context), text)
	numbers := make([]uint32, len(words))
	for i, w := range words {
		numbers[i] = wordNumber(w)
	}
	slices.Sort(numbers)
	c := Counts{Length: len(numbers)}
	for at := 0; at < len(numbers); {
		first := at
		for at < len(numbers) && numbers[at] == numbers[first] {
			at++
		}
		c.Words = append(c.Words, CountOf{numbers[first], uint32(at - first)})
	}
	return c
}

// append writes the length and, of each word, twice how far it is from the one before. An odd number says that
// it occurs more than once, and how often.
func (c Counts) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(c.Length))
	var last uint32
	for _, w := range c.Words {
		far := 2 * uint64(w.Word-last)
		if last = w.Word; w.Times == 1 {
			b = binary.AppendUvarint(b, far)
		} else {
			b = binary.AppendUvarint(binary.AppendUvarint(b, far+1), uint64(w.Times))
		}
	}
	return b
}

// readCounts reads what append has written.
func readCounts(b []byte) (c Counts, err error) {
	next := func() (n uint64) {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b, err = nil, io.ErrUnexpectedEOF
			return 0
		}
		b = b[size:]
		return n
	}
	c.Length = int(next())
	c.Words = make([]CountOf, 0, len(b)/4)
	var last uint32
	for len(b) > 0 {
		far, times := next(), uint64(1)
		if far%2 == 1 {
			times = next()
		}
		last += uint32(far / 2)
		c.Words = append(c.Words, CountOf{last, uint32(times)})
	}
	return c, err
}

// count is how often the text has a word.
func (c Counts) count(word uint32) uint32 {
	at, found := slices.BinarySearchFunc(c.Words, word, func(w CountOf, word uint32) int { return cmp.Compare(w.Word, word) })
	if !found {
		return 0
	}
	return c.Words[at].Times
}

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
	positions, values := make([]uint32, len(c.Words)), make([]float32, len(c.Words))
	for i, w := range c.Words {
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
func Terms(a support.Analyzer, text string, entries int, frequencies map[uint32]uint32) []Term {
	var terms []Term
	for _, w := range a.Append(nil, text) {
		n := wordNumber(w)
		if df := float64(frequencies[n]); df > 0 {
			terms = append(terms, Term{n, float32(math.Log1p((float64(entries) - df + 0.5) / (df + 0.5)))})
		}
	}
	return terms
}

// BM25Query is the sparse vector of a query.
func BM25Query(terms []Term) entity.SparseEmbedding {
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
