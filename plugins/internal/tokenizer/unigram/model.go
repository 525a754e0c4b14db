package unigram

import "unicode/utf8"

// Model turns words into ids. It is read-only and safe for concurrent use.
type Model struct {
	trie     *trie
	scores   []float64 // by id
	unk      int32
	unkScore float64
	bytes    *[256]int32 // ids of <0x00> to <0xFF>, -1 where there is none; nil without byte_fallback
}

// unkPenalty is how far below the lowest score an unknown character is.
const unkPenalty = 10

// Size is the highest id and one.
func (m *Model) Size() int { return len(m.scores) }

// ID returns the id of a token.
func (m *Model) ID(token string) (int32, bool) {
	id := m.trie.find(token)
	return id, id >= 0
}

// node is the best way to cut a word up to some byte.
type node struct {
	score float64
	token int32
	from  int32 // where its last token begins; -1 where no way leads here yet
}

// Append appends the ids of one word, and may stop once ids has limit elements. It takes a
// time in proportion to the word and to the longest tokens that it could hold, and memory
// for its longest part in which tokens overlap everywhere.
func (m *Model) Append(ids []int32, word string, limit int) []int32 {
	nodes := append(make([]node, 0, 64), node{}) // nodes[i] is of byte base+i
	base, unknown := 0, -1                       // what is before base is settled
	for at := 0; at < len(word); {
		if at == base+len(nodes)-1 { // every way leads through here
			if ids, unknown = m.settle(ids, nodes, word, base, unknown); len(ids) >= limit {
				return ids
			}
			nodes, base = append(nodes[:0], node{score: nodes[at-base].score}), at
		}
		_, n := utf8.DecodeRuneInString(word[at:])
		nodes = m.extend(nodes, word[base:], at-base, n)
		at += n
	}
	ids, unknown = m.settle(ids, nodes, word, base, unknown)
	return m.endRun(ids, word, unknown, len(word))
}

// extend adds the tokens of s that begin at a byte, where a character of n bytes stands.
func (m *Model) extend(nodes []node, s string, at, n int) []node {
	score, single := nodes[at].score, false
	place := uint32(0)
	for i := at; i < len(s); i++ {
		if place = m.trie.child(place, s[i]); place == 0 {
			break
		}
		if id := m.trie.ids[place]; id >= 0 {
			nodes = offer(nodes, i+1, node{score + m.scores[id], id, int32(at)})
			single = single || i+1 == at+n
		}
	}
	if !single {
		nodes = offer(nodes, at+n, node{score + m.unkScore, m.unk, int32(at)})
	}
	return nodes
}

// offer takes a way to a byte where it is better than what leads there so far.
func offer(nodes []node, to int, way node) []node {
	for len(nodes) <= to {
		nodes = append(nodes, node{from: -1})
	}
	if best := &nodes[to]; best.from < 0 || way.score > best.score {
		*best = way
	}
	return nodes
}

// settle appends the tokens of the best way to the end of nodes, the first of which is of
// byte base. Neighbouring unknown characters become one token, so that a run of them waits
// for its end: unknown is where one begins, or -1.
func (m *Model) settle(ids []int32, nodes []node, word string, base, unknown int) ([]int32, int) {
	last := int32(len(nodes) - 1)
	// The way leads backwards: turn it round, so that each node names where it leads to.
	to := last
	for at := last; at > 0; {
		at, nodes[at].from, to = nodes[at].from, to, at
	}
	for at := int32(0); at < last; {
		n := nodes[to]
		if n.token != m.unk {
			ids = append(m.endRun(ids, word, unknown, base+int(at)), n.token)
			unknown = -1
		} else if unknown < 0 {
			unknown = base + int(at)
		}
		at, to = to, n.from
	}
	return ids, unknown
}

// endRun appends what stands for a run of unknown characters between two bytes, the first
// of which is -1 where there is none: itself where it is a token, its bytes, or the unknown token.
func (m *Model) endRun(ids []int32, word string, start, end int) []int32 {
	if start < 0 {
		return ids
	}
	run := word[start:end]
	if id := m.trie.find(run); id >= 0 {
		return append(ids, id)
	}
	before := len(ids)
	for i := range len(run) {
		if m.bytes == nil || m.bytes[run[i]] < 0 {
			return append(ids[:before], m.unk)
		}
		ids = append(ids, m.bytes[run[i]])
	}
	return ids
}
