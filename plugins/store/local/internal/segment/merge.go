package segment

import "github.com/racflow/racflow/plugins/store/local/internal/image"

// index is sorted keys with their rows.
type index interface {
	Len() int
	Key(key int) string
	Each(key int, do func(row, count uint32))
}

// index merges the indexes of the inputs. The rows of an input follow those of the
// one before, and so do their lists.
func (b *builder) index(of func(Source) index, rows, ends, text image.Section, counted bool) {
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
				b.WriteUint32(to[row])
				if counted {
					if count >= Many {
						more = append(more, largeCount{position, uint64(count)})
					}
					counts = append(counts, uint8(min(count, Many)))
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
	for i := range b.inputs {
		b.inputs[i].release()
	}
	image.WriteSection(b.Writer, ends, found)
	image.WriteSection(b.Writer, text, keys)
	if !counted {
		return
	}
	image.WriteSection(b.Writer, image.TermCounts, counts)
	image.WriteSection(b.Writer, image.TermLargeCounts, more)
	words := make(HashTable, hashTableSize(len(found)))
	from := uint64(0)
	for i, e := range found {
		words.Add(Hash(string(keys[from:e.text])), uint32(i))
		from = e.text
	}
	image.WriteSection(b.Writer, image.TermTable, words)
}

// head is how far an index has been merged.
type head struct {
	index
	at   int
	text string // the key at hand
	to   []uint32
}

// advance moves the heads off a key and drops those that are done. Their order
// stays, since it is that of the rows.
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
