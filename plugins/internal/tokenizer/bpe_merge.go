package tokenizer

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// pair is a pair of adjacent symbols.
type pair struct{ left, right int32 }

// join is the result of a pair: the symbol id. Pairs of a lower rank are joined first.
type join struct {
	rank uint32
	id   int32
}

// never is the join of a pair without a merge.
var never = join{rank: 1<<32 - 1, id: -1}

// short is the number of symbols up to which a linear search finds the pair of the lowest rank. Longer words keep
// their pairs in a heap.
const short = 48

// join returns the join of two adjacent symbols.
func (m *bpe) join(left, right int32) join {
	if j, ok := m.joins[pair{left, right}]; ok {
		return j
	}
	return never
}

// merge appends the ids that the symbols become. It destroys symbols.
func (m *bpe) merge(ids, symbols []int32) []int32 {
	pairs := make([]join, 0, short)
	for i := range len(symbols) - 1 {
		pairs = append(pairs, m.join(symbols[i], symbols[i+1]))
	}
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
		symbols = slices.Delete(symbols, at+1, at+2)
		pairs = slices.Delete(pairs, at, at+1)
		if at > 0 {
			pairs[at-1] = m.join(symbols[at-1], symbols[at])
		}
		if at < len(pairs) {
			pairs[at] = m.join(symbols[at], symbols[at+1])
		}
	}
}

// mergeLong does merge's work with a heap of pairs over a linked list of symbols.
func (m *bpe) mergeLong(ids, symbols []int32, pairs []join) []int32 {
	n := len(symbols)
	links := make([]link, n)
	var q queue
	for i := range links {
		links[i] = link{prev: i - 1, next: i + 1}
		if i < len(pairs) && pairs[i] != never {
			heap.Push(&q, place(pairs[i].rank, i))
		}
	}
	look := func(at, next int) {
		if at >= 0 && next < n {
			if j := m.join(symbols[at], symbols[next]); j != never {
				heap.Push(&q, place(j.rank, at))
			}
		}
	}
	for len(q) > 0 {
		top := heap.Pop(&q).(uint64) //nolint:errcheck,forcetypeassert // a queue has nothing else
		at := int(top & (1<<32 - 1))
		next := links[at].next
		if symbols[at] < 0 || next >= n {
			continue
		}
		j := m.join(symbols[at], symbols[next])
		if j == never || place(j.rank, at) != top {
			continue // one of the two symbols has changed since
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

// link holds the neighbours of a remaining symbol; -1 and the end mean none.
type link struct{ prev, next int }

// merged is a merge: a pair with its result.
type merged struct {
	pair
	id int32
}

// readMerges reads the list of merges, in the order of their ranks. An element is a pair of tokens, or in older files
// a line with two tokens.
func (m *bpe) readMerges(raw json.RawMessage) ([]merged, error) {
	var merges []merged
	var tokens []string
	i := 0
	err := eachElement(raw, func(element []byte) (err error) {
		i++
		if bytes.HasPrefix(element, []byte(`"#version`)) {
			return nil
		}
		if tokens, err = appendTokens(tokens[:0], element); err != nil {
			return err
		}
		g, err := m.lookUp(tokens)
		if merges = append(merges, g); len(merges) > maxTokens {
			return fmt.Errorf("a model has at most %d", maxTokens)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the BPE model's merge %d: %w", i, err)
	}
	return merges, nil
}

// appendTokens appends the tokens of an element of the list.
func appendTokens(tokens []string, element []byte) ([]string, error) {
	if element[0] == '"' {
		line, err := stringOf(element)
		return append(tokens, strings.Split(line, " ")...), err
	}
	err := eachElement(element, func(token []byte) error {
		s, err := stringOf(token)
		tokens = append(tokens, s)
		return err
	})
	return tokens, err
}

// lookUp finds the ids of a merge.
func (m *bpe) lookUp(tokens []string) (merged, error) {
	if len(tokens) != 2 {
		return merged{}, fmt.Errorf("it has %d tokens; a merge has two", len(tokens))
	}
	left, right := tokens[0], tokens[1]
	if left == "" || right == "" {
		return merged{}, fmt.Errorf("it joins %.40q and %.40q", left, right)
	}
	g := merged{pair{m.idOr(left), m.idOr(right)}, m.idOr(left + right)}
	if g.left < 0 || g.right < 0 || g.id < 0 {
		return g, fmt.Errorf("it needs %.40q, %.40q and %.40q in the vocabulary", left, right, left+right)
	}
	return g, nil
}

// queue is a heap of pairs: the lowest rank comes first; in a tie, the leftmost pair.
type queue []uint64

// place encodes a pair for a queue: its rank, and in the lower bits the position of its left symbol.
func place(rank uint32, at int) uint64 { return uint64(rank)<<32 | uint64(uint32(at)) }

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i] < q[j] }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(p any)        { *q = append(*q, p.(uint64)) } //nolint:errcheck,forcetypeassert // a queue has nothing else

func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	*q = (*q)[:last]
	return p
}
