package milvus

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sort"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/sdk/analyze"
)

// noWords is the dimension that a text without words has, because a server
// takes no empty vector. No word and no query has it.
const noWords = 0

// lastWord is the largest dimension of a sparse vector.
const lastWord = math.MaxUint32 - 2

// number is the dimension of a word in sparse vectors: a hash, so that nobody
// has to keep a dictionary.
func wordNumber(word string) uint32 {
	h := fnv.New64a()
	h.Write([]byte(word))
	sum := h.Sum64()
	return uint32((sum^sum>>32)%lastWord) + 1
}

// count is how often a word occurs in a text.
type count struct{ word, times uint32 }

// counts are the words of one text, in the order of their numbers.
type counts struct {
	words  []count
	length int // words in all
}

// count analyses an entry. Its field is the context and the text; a newline
// separates words under every analyzer, so that the two can be taken one after
// the other.
func countWords(a analyze.Analyzer, context, text string) counts {
	words := a.Append(a.Append(nil, context), text)
	numbers := make([]uint32, len(words))
	for i, w := range words {
		numbers[i] = wordNumber(w)
	}
	slices.Sort(numbers)
	c := counts{length: len(numbers)}
	for i, n := range numbers {
		if i > 0 && numbers[i-1] == n {
			c.words[len(c.words)-1].times++
			continue
		}
		c.words = append(c.words, count{n, 1})
	}
	return c
}

// packed are counts as rows have them. A search reads hundreds and looks for a
// few words in each: it need not take them apart.
type packed struct {
	length int
	words  []byte // 4 bytes each, little endian, rising
	times  []byte // a uvarint each
}

func (c counts) pack() packed {
	p := packed{length: c.length, words: make([]byte, 0, 4*len(c.words)), times: make([]byte, 0, len(c.words))}
	for _, w := range c.words {
		p.words = binary.LittleEndian.AppendUint32(p.words, w.word)
		p.times = binary.AppendUvarint(p.times, uint64(w.times))
	}
	return p
}

// all are the counts again.
func (p packed) all() counts {
	c := counts{length: p.length, words: make([]count, len(p.words)/4)}
	times := p.times
	for i := range c.words {
		n, size := binary.Uvarint(times)
		times = times[max(size, 0):]
		c.words[i] = count{p.word(i), uint32(n)}
	}
	return c
}

func (p packed) word(i int) uint32 { return binary.LittleEndian.Uint32(p.words[4*i:]) }

// count is how often the text has a word.
func (p packed) count(word uint32) uint32 {
	n := len(p.words) / 4
	at := sort.Search(n, func(i int) bool { return p.word(i) >= word })
	if at == n || p.word(at) != word {
		return 0
	}
	times := p.times
	for range at {
		_, size := binary.Uvarint(times)
		times = times[max(size, 0):]
	}
	found, _ := binary.Uvarint(times)
	return uint32(found)
}

// bm25 is BM25 as Lucene has it and with exact lengths; package local gives the
// formula and its sources.
type bm25 struct{ base, slope float32 }

// newBM25 makes the formula for an average length.
func newBM25(k1, b, average float64) bm25 {
	f := bm25{base: float32(k1 * (1 - b))}
	if average > 0 {
		f.slope = float32(k1 * b / average)
	}
	return f
}

// saturation is the part of a word's score that depends on the text.
func (f bm25) saturation(times uint32, length int) float32 {
	tf := float32(times)
	return tf / (tf + f.base + f.slope*float32(length))
}

// idf is the part that depends on the collection, of entries of which df have
// the word.
func idf(entries int, df uint32) float32 {
	n, with := float64(entries), float64(df)
	return float32(math.Log1p((n - with + 0.5) / (with + 0.5)))
}

// document is the sparse vector of a text.
func (f bm25) document(c counts) entity.SparseEmbedding {
	if len(c.words) == 0 {
		return sparse([]uint32{noWords}, []float32{1})
	}
	positions, values := make([]uint32, len(c.words)), make([]float32, len(c.words))
	for i, w := range c.words {
		positions[i], values[i] = w.word, f.saturation(w.times, c.length)
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

// term is a word of a query that the collection has, with its idf.
type term struct {
	word uint32
	idf  float32
}

// queryTerms are the words of a query, as often as it has them.
func (s *state) queryTerms(a analyze.Analyzer, text string) []term {
	var terms []term
	for _, w := range a.Append(nil, text) {
		n := wordNumber(w)
		if df := s.df[n]; df > 0 {
			terms = append(terms, term{n, idf(s.record.Entries, df)})
		}
	}
	return terms
}

// queryVector is the sparse vector of a query.
func queryVector(terms []term) entity.SparseEmbedding {
	at := map[uint32]int{}
	var positions []uint32
	var values []float32
	for _, t := range terms {
		i, ok := at[t.word]
		if !ok {
			i = len(positions)
			at[t.word] = i
			positions, values = append(positions, t.word), append(values, 0)
		}
		values[i] += t.idf
	}
	return sparse(positions, values)
}

// score is the score of a text, by the statistics of today.
func (f bm25) score(terms []term, p packed) float32 {
	var sum float32
	for _, t := range terms {
		if times := p.count(t.word); times > 0 {
			sum += t.idf * f.saturation(times, p.length)
		}
	}
	return sum
}
