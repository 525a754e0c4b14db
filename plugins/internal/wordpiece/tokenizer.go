package wordpiece

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxWord is the length in characters above which a word becomes [UNK].
const maxWord = 100

// Tokenizer turns text into token ids by WordPiece (Wu et al. 2016,
// arXiv:1609.08144), the way of BERT's uncased models. It is read-only and safe
// for concurrent use.
type Tokenizer struct {
	first         map[string]int32 // pieces that begin a word
	rest          map[string]int32 // pieces that continue one, without their ##
	specials      []special
	unk, cls, sep int32
	size          int // ids run from 0 to size-1
}

// special is a token that stands for itself wherever its name occurs in a text.
type special struct {
	name string
	id   int32
}

// New reads a vocabulary of one token a line, whose id is the number of the line. name is
// that of the file, for errors.
func New(vocab io.Reader, name string) (*Tokenizer, error) {
	t := &Tokenizer{first: map[string]int32{}, rest: map[string]int32{}}
	lines := bufio.NewScanner(vocab)
	for ; lines.Scan(); t.size++ {
		id := int32(t.size)
		if piece, ok := strings.CutPrefix(lines.Text(), "##"); ok && piece != "" {
			t.rest[piece] = id
		} else {
			t.first[lines.Text()] = id
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: read the vocabulary: %w", name, err)
	}
	for _, s := range []struct {
		name string
		id   *int32
	}{{"[PAD]", nil}, {"[UNK]", &t.unk}, {"[CLS]", &t.cls}, {"[SEP]", &t.sep}, {"[MASK]", nil}} {
		id, ok := t.first[s.name]
		if !ok {
			return nil, fmt.Errorf("%s: the token %s is missing: use the vocab.txt of an uncased BERT model", name, s.name)
		}
		if s.id != nil {
			*s.id = id
		}
		t.specials = append(t.specials, special{s.name, id})
	}
	return t, nil
}

// Size is the number of tokens: their ids run from 0 to Size-1.
func (t *Tokenizer) Size() int { return t.size }

// Encode returns the ids of a text between [CLS] and [SEP], at most limit in all, which
// is two or more. It stops reading a long text at the limit.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	ids := append(make([]int32, 0, 32), t.cls)
	for text != "" && len(ids) < limit-1 {
		plain, after, found := t.cutSpecial(text)
		for word := range words(plain) {
			if ids = t.appendPieces(ids, word); len(ids) >= limit-1 {
				break
			}
		}
		if found != nil {
			ids = append(ids, found.id)
		}
		text = after
	}
	if len(ids) > limit-1 {
		ids = ids[:limit-1]
	}
	return append(ids, t.sep)
}

// cutSpecial cuts text around the first special token in it. found is nil where
// there is none.
func (t *Tokenizer) cutSpecial(text string) (before, after string, found *special) {
	for at := 0; ; at++ {
		bracket := strings.IndexByte(text[at:], '[')
		if bracket < 0 {
			return text, "", nil
		}
		at += bracket
		for i, s := range t.specials {
			if strings.HasPrefix(text[at:], s.name) {
				return text[:at], text[at+len(s.name):], &t.specials[i]
			}
		}
	}
}

// appendPieces appends the ids of the longest pieces that make up word, from the
// left, or [UNK] where a remainder matches none.
func (t *Tokenizer) appendPieces(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > maxWord {
		return append(ids, t.unk)
	}
	start := len(ids)
	pieces := t.first
	for word != "" {
		id, n := longestPrefix(pieces, word)
		if n == 0 {
			return append(ids[:start], t.unk)
		}
		ids = append(ids, id)
		word, pieces = word[n:], t.rest
	}
	return ids
}

// longestPrefix returns the id and the length in bytes of the longest prefix of
// word among the pieces; the length is 0 where there is none.
func longestPrefix(pieces map[string]int32, word string) (int32, int) {
	for n := len(word); n > 0; {
		if id, ok := pieces[word[:n]]; ok {
			return id, n
		}
		_, last := utf8.DecodeLastRuneInString(word[:n])
		n -= last
	}
	return 0, 0
}
