package wordpiece

import "unicode/utf8"

// maxPiece is the greatest length in bytes of a token that words can hold; it bounds the
// time for a word.
const maxPiece = 512

// Model is a vocabulary. It is read-only and safe for concurrent use.
type Model struct {
	first   map[string]int32 // all tokens: those that begin a word
	rest    map[string]int32 // those that continue one, without their prefix
	longest [2]int           // bytes of the longest of first and of rest
	unk     int32
	maxWord int // characters of a word above which it is unknown
	size    int
}

// ID returns the id of a token as the vocabulary has it, prefix included.
func (m *Model) ID(token string) (int32, bool) {
	id, ok := m.first[token]
	return id, ok
}

// Size is the highest id plus one.
func (m *Model) Size() int { return m.size }

// MaxWord is the number of characters above which a word is unknown.
func (m *Model) MaxWord() int { return m.maxWord }

// Append appends the ids of the pieces of a word, or the unknown token where a remainder
// matches no piece.
func (m *Model) Append(ids []int32, word string, _ int) []int32 {
	if m.long(word) {
		return append(ids, m.unk)
	}
	start := len(ids)
	for at := 0; at < len(word); {
		id, n := m.longestPrefix(word[at:], at > 0)
		if n == 0 {
			return append(ids[:start], m.unk)
		}
		ids = append(ids, id)
		at += n
	}
	return ids
}

// Pieces appends the bytes of a word at which its pieces begin: the first alone where it
// is unknown.
func (m *Model) Pieces(starts []int, word string) []int {
	count := len(starts)
	for at := 0; at < len(word); {
		_, n := m.longestPrefix(word[at:], at > 0)
		if n == 0 || m.long(word) {
			return append(starts[:count], 0)
		}
		starts = append(starts, at)
		at += n
	}
	return starts
}

func (m *Model) long(word string) bool {
	return len(word) > m.maxWord && utf8.RuneCountInString(word) > m.maxWord
}

// longestPrefix returns the id and the length in bytes of the longest prefix of a word, or
// of the rest of one, among the pieces; the length is 0 where there is none.
func (m *Model) longestPrefix(word string, rest bool) (int32, int) {
	pieces, n := m.first, min(len(word), m.longest[0])
	if rest {
		pieces, n = m.rest, min(len(word), m.longest[1])
	}
	for n < len(word) && n > 0 && !utf8.RuneStart(word[n]) {
		n--
	}
	for n > 0 {
		if id, ok := pieces[word[:n]]; ok {
			return id, n
		}
		for n--; n > 0 && !utf8.RuneStart(word[n]); n-- {
		}
	}
	return 0, 0
}
