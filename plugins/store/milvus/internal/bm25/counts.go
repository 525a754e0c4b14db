package bm25

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sort"

	"github.com/racflow/racflow/sdk/analyze"
)

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

// Count is how often a word occurs in a text.
type Count struct{ Word, Times uint32 }

// Counts are the words of one text as rows keep them, packed: a search reads
// hundreds and looks for a few words in each.
type Counts struct {
	Length int    // words in all
	Words  []byte // 4 bytes each, little endian, rising
	Times  []byte // a uvarint each
}

// CountWords analyses the context and the text of an entry, one after the other:
// between them would stand a newline, which separates words under every analyzer.
func CountWords(a analyze.Analyzer, context, text string) Counts {
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
		c.Words = binary.LittleEndian.AppendUint32(c.Words, numbers[first])
		c.Times = binary.AppendUvarint(c.Times, uint64(at-first))
	}
	return c
}

// All unpacks the counts, in the order of the words' numbers.
func (c Counts) All() []Count {
	all := make([]Count, len(c.Words)/4)
	times := c.Times
	for i := range all {
		n, size := binary.Uvarint(times)
		times = times[max(size, 0):]
		all[i] = Count{c.word(i), uint32(n)}
	}
	return all
}

func (c Counts) word(i int) uint32 { return binary.LittleEndian.Uint32(c.Words[4*i:]) }

// count is how often the text has a word.
func (c Counts) count(word uint32) uint32 {
	n := len(c.Words) / 4
	at := sort.Search(n, func(i int) bool { return c.word(i) >= word })
	if at == n || c.word(at) != word {
		return 0
	}
	times := c.Times
	for range at {
		_, size := binary.Uvarint(times)
		times = times[max(size, 0):]
	}
	found, _ := binary.Uvarint(times)
	return uint32(found)
}

// Valid reports whether there are as many times as words, as in counts that were
// read and not damaged.
func (c Counts) Valid() bool {
	n := 0
	for _, b := range c.Times {
		if b < 0x80 {
			n++
		}
	}
	return len(c.Words) == 4*n && (len(c.Times) == 0 || c.Times[len(c.Times)-1] < 0x80)
}
