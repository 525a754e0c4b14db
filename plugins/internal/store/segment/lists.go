package segment

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Lists is an inverted index: sorted keys, and for each key the rows that have it, in rising order. The lists follow
// one another, so the lists of adjacent keys form one slice.
type Lists struct {
	ends []listEnd
	text string
	Rows []uint32
}

// listEnd is where a key and its list end.
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

// Extent returns the range of Rows of the keys from first up to last, excluding last. It is empty if the ends are
// damaged.
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

// Search returns the first key that is not less than the given one.
func (l *Lists) Search(key string) int {
	return sort.Search(len(l.ends), func(i int) bool { return l.Key(i) >= key })
}

// After returns the first key at or after at that does not begin with prefix.
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

// Terms holds the lists of the words, and how often each word occurs in each row.
type Terms struct {
	Lists
	directory hashTable
	Counts    []uint8 // ManyRows: the count is in a list of large counts
	more      []largeCount
}

// ManyRows is the first count that is not stored in a byte.
const ManyRows = 255

// largeCount is a count of ManyRows or more, with its position in the lists.
type largeCount struct {
	position uint64
	count    uint64
}

// Find returns the number of a word, or -1.
func (t *Terms) Find(hash uint64, word string) int32 {
	return t.directory.Find(hash, func(i uint32) bool { return int(i) < len(t.ends) && t.Key(int(i)) == word })
}

// Count returns how often the word at a position in the lists occurs in its row.
func (t *Terms) Count(position int) uint32 {
	if c := t.Counts[position]; c < ManyRows {
		return uint32(c)
	}
	i, ok := slices.BinarySearchFunc(t.more, uint64(position), func(c largeCount, position uint64) int {
		return cmp.Compare(c.position, position)
	})
	if !ok {
		return ManyRows
	}
	return uint32(t.more[i].count)
}

// Each calls do with the rows of a word, and how often it occurs there.
func (t *Terms) Each(key int, do func(row, count uint32)) {
	from, to := t.Extent(key, key+1)
	for i := from; i < to; i++ {
		do(t.Rows[i], t.Count(i))
	}
}

// index is a list of sorted keys with their rows.
type index interface {
	Len() int
	Key(key int) string
	Each(key int, do func(row, count uint32))
}

// index merges the indexes of the inputs. The rows of an input follow the rows of the previous one, and so do the
// lists.
func (b *builder) index(of func(Source) index, rows, ends, text Section, counted bool) {
	heads := make([]head, 0, len(b.inputs))
	for i, in := range b.inputs {
		if x := of(in.Source); x.Len() > 0 {
			heads = append(heads, head{index: x, text: x.Key(0), to: b.to[i]})
		}
	}
	var found []listEnd
	var keys []byte
	var counts []uint8
	var more []largeCount
	position := uint64(0)
	b.Begin(rows)
	for len(heads) > 0 {
		least := heads[0].text
		for _, h := range heads[1:] {
			least = min(least, h.text)
		}
		before := position
		for i := range heads {
			if heads[i].text != least {
				continue
			}
			to := heads[i].to
			heads[i].Each(heads[i].at, func(row, count uint32) {
				if row >= uint32(len(to)) || to[row] == gone {
					return
				}
				b.writeUint32(to[row])
				if counted {
					if count >= ManyRows {
						more = append(more, largeCount{position, uint64(count)})
					}
					counts = append(counts, uint8(min(count, ManyRows)))
				}
				position++
			})
		}
		if position > before {
			keys = append(keys, least...)
			found = append(found, listEnd{uint64(len(keys)), position})
		}
		heads = advance(heads, least)
	}
	writeSection(b.ImageWriter, ends, found)
	writeSection(b.ImageWriter, text, keys)
	if !counted {
		return
	}
	writeSection(b.ImageWriter, TermCounts, counts)
	writeSection(b.ImageWriter, TermLargeCounts, more)
	words := make(hashTable, hashTableSize(len(found)))
	from := uint64(0)
	for i, e := range found {
		words.Add(Hash(string(keys[from:e.text])), uint32(i))
		from = e.text
	}
	writeSection(b.ImageWriter, TermTable, words)
}

// head is the position in an index that is being merged.
type head struct {
	index
	at   int
	text string // the current key
	to   []uint32
}

// advance moves the heads past a key and drops finished ones. It keeps the order of the heads, which is the order of
// the rows.
func advance(heads []head, key string) []head {
	left := heads[:0]
	for _, h := range heads {
		if h.text == key {
			if h.at++; h.at == h.Len() {
				continue
			}
			h.text = h.Key(h.at)
		}
		left = append(left, h)
	}
	return left
}
