package unigram

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// trie holds strings with an id each, as nodes by level: the children of a node are
// neighbours, in the order of their labels. A node takes nine bytes.
type trie struct {
	labels   []byte   // of the edge to each node
	children []uint32 // of node i: from children[i] to children[i+1]
	ids      []int32  // -1 where no string ends
	roots    [256]uint32
}

// newTrie makes a trie of tokens. Their ids are their places, for equal ones the last.
func newTrie(tokens []string) *trie {
	type key struct {
		begin uint64 // the first bytes, which most comparisons end at
		id    int32
	}
	order := make([]key, len(tokens))
	for i, token := range tokens {
		var begin [8]byte
		copy(begin[:], token)
		order[i] = key{binary.BigEndian.Uint64(begin[:]), int32(i)}
	}
	slices.SortFunc(order, func(a, b key) int {
		if c := cmp.Compare(a.begin, b.begin); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(tokens[a.id], tokens[b.id]), cmp.Compare(a.id, b.id))
	})
	t := &trie{labels: []byte{0}}
	type span struct{ from, to, depth int32 } // the strings below a node, which share depth bytes
	level := []span{{0, int32(len(order)), 0}}
	for len(level) > 0 {
		var next []span
		for _, s := range level {
			id := int32(-1)
			for s.from < s.to && len(tokens[order[s.from].id]) == int(s.depth) {
				id = order[s.from].id
				s.from++
			}
			t.ids = append(t.ids, id)
			t.children = append(t.children, uint32(len(t.labels)))
			for s.from < s.to {
				label := tokens[order[s.from].id][s.depth]
				end := s.from + 1
				for end < s.to && tokens[order[end].id][s.depth] == label {
					end++
				}
				t.labels = append(t.labels, label)
				next = append(next, span{s.from, end, s.depth + 1})
				s.from = end
			}
		}
		level = next
	}
	t.children = append(t.children, uint32(len(t.labels)))
	for i := t.children[0]; i < t.children[1]; i++ {
		t.roots[t.labels[i]] = i
	}
	return t
}

// child returns the node below a node by a byte, or 0 where there is none.
func (t *trie) child(node uint32, b byte) uint32 {
	if node == 0 {
		return t.roots[b]
	}
	first := t.children[node]
	labels := t.labels[first:t.children[node+1]]
	if len(labels) > 0 && labels[0] == b {
		return first
	}
	if i := bytes.IndexByte(labels, b); i > 0 {
		return first + uint32(i)
	}
	return 0
}

// find returns the id of a string, or -1.
func (t *trie) find(s string) int32 {
	node := uint32(0)
	for i := range len(s) {
		if node = t.child(node, s[i]); node == 0 {
			return -1
		}
	}
	return t.ids[node]
}
