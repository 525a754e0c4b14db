package tokenizer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// This file is the model WordPiece of tokenizer.json, and of a vocab.txt: it cuts words into the longest pieces of a
// vocabulary, from the left (Wu et al. 2016, arXiv:1609.08144).
//
// It reads vocabularies in time and memory bounded by their size, and refuses anything that no trained vocabulary
// has. It does not split texts into words, and does not train.

// maxPiece is the greatest length in bytes of a token that can be a part of words. It bounds the time for a word.
const maxPiece = 512

// wordPiece is a vocabulary. It is read-only and safe for concurrent use.
type wordPiece struct {
	first   map[string]int32 // all tokens: pieces that begin a word
	rest    map[string]int32 // pieces that continue a word, without their prefix
	longest [2]int           // bytes of the longest piece of first and of rest
	unk     int32
	maxWord int // a word with more characters is unknown
	size    int
}

// ID returns the id of a token in its form in the vocabulary, including a prefix.
func (m *wordPiece) ID(token string) (int32, bool) {
	id, ok := m.first[token]
	return id, ok
}

// Size is the highest id plus one.
func (m *wordPiece) Size() int { return m.size }

// Append appends the ids of the pieces of a word. If a remainder matches no piece, it appends the unknown token
// instead.
func (m *wordPiece) Append(ids []int32, word string) []int32 {
	if len(word) > m.maxWord && utf8.RuneCountInString(word) > m.maxWord {
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

// longestPrefix returns the id and the length in bytes of the longest piece that a word, or the rest of a word,
// begins with. The length is 0 if there is none.
func (m *wordPiece) longestPrefix(word string, rest bool) (int32, int) {
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

// newWordPiece reads the "model" of a tokenizer.json. Its errors do not name the file.
func newWordPiece(raw json.RawMessage) (*wordPiece, error) {
	f := struct {
		Unknown string          `json:"unk_token"`
		Prefix  string          `json:"continuing_subword_prefix"`
		MaxWord int             `json:"max_input_chars_per_word"`
		Vocab   json.RawMessage `json:"vocab"`
	}{"[UNK]", "##", 100, nil}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.MaxWord < 1 {
		return nil, fmt.Errorf("max_input_chars_per_word is %d", f.MaxWord)
	}
	vocab, size, err := readIDs(f.Vocab)
	if err != nil {
		return nil, err
	}
	return buildWordpiece(vocab, size, f.Unknown, f.Prefix, f.MaxWord)
}

// readVocab reads a vocab.txt with one token per line. A token's id is its line number, from 0.
func readVocab(vocab io.Reader) (*wordPiece, error) {
	ids := make(map[string]int32, 1<<15) // about BERT's number
	lines := bufio.NewScanner(vocab)
	n := 0
	for ; lines.Scan(); n++ {
		ids[lines.Text()] = int32(n)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is no token: %w", n+1, err)
	} else if err != nil {
		return nil, err
	}
	return buildWordpiece(ids, n, "[UNK]", "##", 100)
}

func buildWordpiece(vocab map[string]int32, size int, unknown, prefix string, maxWord int) (*wordPiece, error) {
	m := &wordPiece{first: vocab, rest: make(map[string]int32, len(vocab)/4), maxWord: maxWord, size: size}
	for token, id := range vocab {
		if len(token) > maxPiece && utf8.RuneCountInString(token) <= maxWord {
			return nil, fmt.Errorf("token %.40q... has %d bytes: %d are possible", token, len(token), maxPiece)
		}
		m.longest[0] = min(max(m.longest[0], len(token)), maxPiece)
		if piece, ok := strings.CutPrefix(token, prefix); ok && piece != "" {
			m.rest[piece] = id
			m.longest[1] = min(max(m.longest[1], len(piece)), maxPiece)
		}
	}
	var ok bool
	if m.unk, ok = m.first[unknown]; !ok {
		return nil, fmt.Errorf("the vocabulary of %d tokens lacks the unknown token %q", len(vocab), unknown)
	}
	return m, nil
}
