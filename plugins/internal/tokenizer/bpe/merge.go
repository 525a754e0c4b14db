package bpe

// pair is two neighbouring symbols.
type pair struct{ left, right int32 }

// join is what becomes of a pair: the symbol id, before all pairs of a higher rank.
type join struct {
	rank uint32
	id   int32
}

// never is the join of a pair that no merge names.
var never = join{rank: 1<<32 - 1, id: -1}

// short is the number of symbols up to which the pair of the lowest rank is looked for
// among all; longer words keep their pairs in a heap.
const short = 48

// join looks up what becomes of two neighbours.
func (m *Model) join(left, right int32) join {
	if j, ok := m.joins[pair{left, right}]; ok {
		return j
	}
	return never
}

// merge appends what the symbols become. pairs holds the joins of neighbours, one fewer
// than symbols; both are used up.
func (m *Model) merge(ids, symbols []int32, pairs []join) []int32 {
	if len(symbols) > short {
		return m.mergeLong(ids, symbols, pairs)
	}
	for {
		best := never
		at := 0
		for i, j := range pairs {
			if j.rank < best.rank {
				best, at = j, i
			}
		}
		if best == never {
			return append(ids, symbols...)
		}
		symbols[at] = best.id
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		pairs = append(pairs[:at], pairs[at+1:]...)
		if at > 0 {
			pairs[at-1] = m.join(symbols[at-1], symbols[at])
		}
		if at < len(pairs) {
			pairs[at] = m.join(symbols[at], symbols[at+1])
		}
	}
}

// mergeLong does merge's work with a heap of pairs over a linked list of symbols.
func (m *Model) mergeLong(ids, symbols []int32, pairs []join) []int32 {
	n := len(symbols)
	links := make([]link, n)
	var q queue
	for i := range links {
		links[i] = link{prev: i - 1, next: i + 1}
		if i < len(pairs) && pairs[i] != never {
			q.push(place(pairs[i].rank, i))
		}
	}
	look := func(at, next int) {
		if at >= 0 && next < n {
			if j := m.join(symbols[at], symbols[next]); j != never {
				q.push(place(j.rank, at))
			}
		}
	}
	for len(q) > 0 {
		top := q.pop()
		at := int(top & (1<<32 - 1))
		next := links[at].next
		if symbols[at] < 0 || next >= n {
			continue
		}
		j := m.join(symbols[at], symbols[next])
		if j == never || place(j.rank, at) != top {
			continue // one of the two has become something else since
		}
		symbols[at], symbols[next] = j.id, -1
		links[at].next = links[next].next
		if after := links[at].next; after < n {
			links[after].prev = at
		}
		look(links[at].prev, at)
		look(at, links[at].next)
	}
	for at := 0; at < n; at = links[at].next {
		ids = append(ids, symbols[at])
	}
	return ids
}

// link holds the neighbours of a symbol that is left; there is none at -1 and at the end.
type link struct{ prev, next int }
