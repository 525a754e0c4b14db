package local

// index is sorted keys with their rows.
type index interface {
	len() int
	key(key int) string
	each(key int, do func(row, count uint32))
}

// index merges the indexes of the inputs. Since the rows of each input stand
// behind those of the one before, so do their lists.
func (b *builder) index(of func(source) index, rows, ends, text section, counted bool) {
	heads := make([]head, 0, len(b.inputs))
	for i, in := range b.inputs {
		if x := of(in.source); x.len() > 0 {
			heads = append(heads, head{index: x, text: x.key(0), to: b.to[i]})
		}
	}
	var found []listEnd
	var keys []byte
	var counts []uint8
	var more []largeCount
	place := uint64(0)
	b.begin(rows)
	for len(heads) > 0 {
		least := heads[0].text
		for _, h := range heads[1:] {
			least = min(least, h.text)
		}
		before := place
		for i := range heads {
			if heads[i].text != least {
				continue
			}
			to := heads[i].to
			heads[i].each(heads[i].at, func(row, count uint32) {
				if row >= uint32(len(to)) || to[row] == gone {
					return
				}
				b.writeUint32(to[row])
				if counted {
					if count >= many {
						more = append(more, largeCount{place, uint64(count)})
					}
					counts = append(counts, uint8(min(count, many)))
				}
				place++
			})
		}
		if place > before {
			keys = append(keys, least...)
			found = append(found, listEnd{uint64(len(keys)), place})
		}
		heads = advance(heads, least)
	}
	for i := range b.inputs {
		b.inputs[i].release()
	}
	writeSection(b.imageWriter, ends, found)
	writeSection(b.imageWriter, text, keys)
	if !counted {
		return
	}
	writeSection(b.imageWriter, sectionWordCounts, counts)
	writeSection(b.imageWriter, sectionWordMore, more)
	words := make(directory, directorySize(len(found)))
	from := uint64(0)
	for i, e := range found {
		words.add(hash(string(keys[from:e.text])), uint32(i))
		from = e.text
	}
	writeSection(b.imageWriter, sectionWordDirectory, words)
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
			if h.at++; h.at == h.len() {
				continue
			}
			h.text = h.key(h.at)
		}
		left = append(left, h)
	}
	return left
}
