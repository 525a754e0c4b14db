package local

import (
	"slices"
	"sort"
)

// lists is an inverted index: sorted keys, and for each the rows that have it,
// rising. The lists stand one after another, so that those of neighbouring keys
// are one.
type lists struct {
	ends []listEnd
	text string
	rows []uint32
}

// listEnd says where a key and its list end.
type listEnd struct{ text, rows uint64 }

func (l *lists) len() int { return len(l.ends) }

func (l *lists) start(key int) listEnd {
	if key == 0 {
		return listEnd{}
	}
	return l.ends[key-1]
}

func (l *lists) key(key int) string {
	from := l.start(key).text
	return span(l.text, from, l.ends[key].text-from)
}

// extent returns where the lists of the keys from first up to last, without it,
// stand in rows: nowhere, where the ends are damaged.
func (l *lists) extent(first, last int) (from, to int) {
	if first >= last {
		return 0, 0
	}
	a, b := l.start(first).rows, l.ends[last-1].rows
	if a > b || b > uint64(len(l.rows)) {
		return 0, 0
	}
	return int(a), int(b)
}

// search returns the first key that is not below the given one.
func (l *lists) search(key string) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.key(i) >= key })
}

func (l *lists) each(key int, do func(row, count uint32)) {
	from, to := l.extent(key, key+1)
	for _, r := range l.rows[from:to] {
		do(r, 1)
	}
}

// terms is the lists of the words, with how often each occurs in each row.
type terms struct {
	lists
	directory directory
	counts    []uint8 // many: it stands in more
	more      []largeCount
}

// many is the count that does not fit a byte any more.
const many = 255

// largeCount is a count of many or more, by its place in the lists.
type largeCount struct {
	place uint64
	count uint64
}

// find returns the number of a word, or -1.
func (t *terms) find(hash uint64, word string) int32 {
	return t.directory.find(hash, func(i uint32) bool { return int(i) < len(t.ends) && t.key(int(i)) == word })
}

// count returns how often the word of a place in the lists occurs in its row.
func (t *terms) count(place int) uint32 {
	if c := t.counts[place]; c < many {
		return uint32(c)
	}
	i, ok := slices.BinarySearchFunc(t.more, uint64(place), func(c largeCount, place uint64) int {
		switch {
		case c.place < place:
			return -1
		case c.place > place:
			return 1
		}
		return 0
	})
	if !ok {
		return many
	}
	return uint32(t.more[i].count)
}

func (t *terms) each(key int, do func(row, count uint32)) {
	from, to := t.extent(key, key+1)
	for i := from; i < to; i++ {
		do(t.rows[i], t.count(i))
	}
}
