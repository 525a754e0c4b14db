package segment

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Lists is an inverted index: sorted keys, and for each the rows that have it,
// rising. The lists follow one another, so those of neighbouring keys are one slice.
type Lists struct {
	ends []listEnd
	text string
	Rows []uint32
}

// listEnd says where a key and its list end.
type listEnd struct{ text, rows uint64 }

// Len is the number of keys.
func (l *Lists) Len() int { return len(l.ends) }

func (l *Lists) start(key int) listEnd {
	if key == 0 {
		return listEnd{}
	}
	return l.ends[key-1]
}

// Key returns a key by its number.
func (l *Lists) Key(key int) string {
	from := l.start(key).text
	return span(l.text, from, l.ends[key].text-from)
}

// Extent returns the part of Rows that the keys from first up to last, without it,
// have; an empty one if the ends are damaged.
func (l *Lists) Extent(first, last int) (from, to int) {
	if first >= last {
		return 0, 0
	}
	a, b := l.start(first).rows, l.ends[last-1].rows
	if a > b || b > uint64(len(l.Rows)) {
		return 0, 0
	}
	return int(a), int(b)
}

// Search returns the first key that is not below the given one.
func (l *Lists) Search(key string) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.Key(i) >= key })
}

// After returns the first key from at on that does not begin with prefix.
func (l *Lists) After(at int, prefix string) int {
	return at + sort.Search(len(l.ends)-at, func(i int) bool { return !strings.HasPrefix(l.Key(at+i), prefix) })
}

// Each calls do with the rows of a key.
func (l *Lists) Each(key int, do func(row, count uint32)) {
	from, to := l.Extent(key, key+1)
	for _, r := range l.Rows[from:to] {
		do(r, 1)
	}
}

// Terms is the lists of the words, with how often each occurs in each row.
type Terms struct {
	Lists
	directory HashTable
	Counts    []uint8 // many: it stands in more
	more      []largeCount
	ranks     sync.Map // of long lists that were searched: Ranks by word
}

// Many is the count that does not fit a byte any more.
const Many = 255

// largeCount is a count of many or more, by its position in the lists.
type largeCount struct {
	position uint64
	count    uint64
}

// Find returns the number of a word, or -1.
func (t *Terms) Find(hash uint64, word string) int32 {
	return t.directory.Find(hash, func(i uint32) bool { return int(i) < len(t.ends) && t.Key(int(i)) == word })
}

// Count returns how often the word of a position in the lists occurs in its row.
func (t *Terms) Count(position int) uint32 {
	if c := t.Counts[position]; c < Many {
		return uint32(c)
	}
	i, ok := slices.BinarySearchFunc(t.more, uint64(position), func(c largeCount, position uint64) int {
		return cmp.Compare(c.position, position)
	})
	if !ok {
		return Many
	}
	return uint32(t.more[i].count)
}

// Each calls do with the rows of a word, and how often it is there.
func (t *Terms) Each(key int, do func(row, count uint32)) {
	from, to := t.Extent(key, key+1)
	for i := from; i < to; i++ {
		do(t.Rows[i], t.Count(i))
	}
}
