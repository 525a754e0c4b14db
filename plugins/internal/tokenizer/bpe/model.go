package bpe

import "unicode/utf8"

// Model turns words into ids. It is read-only and safe for concurrent use.
type Model struct {
	ids    map[string]int32
	size   int
	chars  []int32 // the ids of the first characters of Unicode, -1 where there is none
	joins  map[pair]join
	divide bool // pairs of symbols that joins lacks are never joined, nor is what they become

	unk            int32 // -1 where unknown characters are dropped
	fuse           bool  // neighbouring unknown characters become one unknown token
	bytes          *[256]int32
	whole          bool // a word that is a token needs no merges
	prefix, suffix string
}

// Size is the highest id and one.
func (m *Model) Size() int { return m.size }

// ID returns the id of a token.
func (m *Model) ID(token string) (int32, bool) {
	id, ok := m.ids[token]
	return id, ok
}

// Append appends the ids of one word, and may stop once ids has limit elements. A word of n
// characters takes n log n steps; words without pairs that merges join are cut there.
func (m *Model) Append(ids []int32, word string, limit int) []int32 {
	if m.whole {
		if id, ok := m.ids[word]; ok {
			return append(ids, id)
		}
	}
	symbols, pairs := make([]int32, 0, short), make([]join, 0, short)
	add := func(id int32) {
		if n := len(symbols); n > 0 {
			j, ok := m.joins[pair{symbols[n-1], id}]
			if ok || !m.divide {
				if !ok {
					j = never
				}
				pairs = append(pairs, j)
			} else {
				ids = m.merge(ids, symbols, pairs)
				symbols, pairs = symbols[:0], pairs[:0]
			}
		}
		symbols = append(symbols, id)
	}
	unknown := false // an unknown token waits, to be fused with those behind it
	for at := 0; at < len(word); {
		if len(ids) >= limit {
			return ids
		}
		r, n := utf8.DecodeRuneInString(word[at:])
		id, text := m.character(word, at, n, r)
		at += n
		if id >= 0 {
			if unknown {
				add(m.unk)
				unknown = false
			}
			add(id)
			continue
		}
		if m.bytes != nil && m.known(text) {
			for i := range len(text) {
				add(m.bytes[text[i]])
			}
			continue
		}
		if m.unk >= 0 {
			if unknown && !m.fuse {
				add(m.unk)
			}
			unknown = true
		}
	}
	if unknown {
		add(m.unk)
	}
	return m.merge(ids, symbols, pairs)
}

// character returns the id of the character of n bytes at a byte of the word, or -1 and the
// text that was looked for, the affixes of its place in the word included.
func (m *Model) character(word string, at, n int, r rune) (int32, string) {
	if int(r) < len(m.chars) {
		if id := m.chars[r]; id >= 0 {
			return id, ""
		}
	}
	text := word[at : at+n]
	if m.prefix != "" && at > 0 {
		text = m.prefix + text
	}
	if m.suffix != "" && at+n == len(word) {
		text += m.suffix
	}
	if id, ok := m.ids[text]; ok {
		return id, ""
	}
	return -1, text
}

// known reports whether every byte of text has a token.
func (m *Model) known(text string) bool {
	for i := range len(text) {
		if m.bytes[text[i]] < 0 {
			return false
		}
	}
	return true
}
