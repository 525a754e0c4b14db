package lexical

import (
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/segment"
)

// postings is what is left of a word's list in a part.
type postings struct {
	terms    *segment.Terms
	term     int
	weight   float32       // its idf, as often as the query has the word
	first    int           // position of the list
	ranks    segment.Ranks // nil: look rows up in rows
	rows     []uint32
	counts   []uint8
	position int // of the first of rows
	here     int // of them in the window at hand
}

// tf is how often the word occurs in one of the rows that are left.
func (list *postings) tf(i int) float32 {
	if c := list.counts[i]; c != segment.Many {
		return float32(c)
	}
	return float32(list.terms.Count(list.position + i))
}

func (list *postings) skip(n int) {
	list.rows, list.counts = list.rows[n:], list.counts[n:]
	list.position += n
}

// find returns where a row of the window stands among those that are left.
func (list *postings) find(row uint32) (i int, ok bool) {
	if list.ranks == nil {
		return slices.BinarySearch(list.rows[:list.here], row)
	}
	i, ok = list.ranks.Find(row)
	i -= list.position - list.first
	return i, ok && uint(i) < uint(list.here) // else damaged
}

// share is the part of a word in a row's score, without the idf. Here and where shares are
// added, products are converted to float32, so that no compiler fuses them with the sum: a
// row's score is the same to the bit however it is found, on every processor.
func (l *lexical) share(tf, length float32) float32 {
	return tf / (tf + l.base + float32(l.slope*length))
}

// gallop returns how many of the rising rows are below a row. Its steps double, so it
// is cheap where few of many are.
func gallop(rows []uint32, row uint32) int {
	step := 1
	for step < len(rows) && rows[step-1] < row {
		step *= 2
	}
	low, high := step/2, min(step, len(rows))
	for low < high { // slices.BinarySearch is slower here
		if middle := int(uint(low+high) / 2); rows[middle] < row {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
