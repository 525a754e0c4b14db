package tokenizer

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

// Tokenizer turns texts into ids. It is read-only and safe for concurrent use.
type Tokenizer struct {
	added      *addedTokens // found in the text as it is
	normalized *addedTokens // found in the normalised text
	normalizer *normalizer.Normalizer
	words      *normalizer.PreTokenizer
	model      model
	template   template

	bert        *normalizer.Bert // the normalizer, if it is BERT's
	prefix      *bool            // whether the pre-tokenizer puts a space before texts, if it is ByteLevel
	size        int
	fingerprint string
}

// Each calls begin with the byte of text at which each of its tokens begins, in order
// and each byte once, without a limit and without the template's special tokens.
//
// The tokens of what stands between two white spaces are counted and spread evenly over its bytes. A word
// longer than 100 characters counts as several, since many models read it as one unknown token.
func (t *Tokenizer) Each(text string, begin func(at int)) {
	var ids []int32
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])
		if isSpace(r) {
			at += n
			continue
		}
		end := fieldEnd(text, at)
		field := text[at:end]
		if at > 0 && text[at-1] == ' ' {
			field = text[at-1 : end] // models read the space with the word
		}
		ids = t.appendText(ids[:0], field, at == 0, math.MaxInt)
		n = end - at
		count := min(len(ids), n)
		for i := range count {
			begin(at + i*n/count)
		}
		at = end
	}
}

// fieldEnd is the end of the characters from a byte on that are not white space, or of the first 100 of them.
func fieldEnd(text string, at int) int {
	const most = 100
	n := 0
	for i, r := range text[at:] {
		if n++; n > most || isSpace(r) {
			return at + i
		}
	}
	return len(text)
}

// isSpace reports whether r separates words. Control characters do not, apart from those
// of lines: BERT drops them, which joins their neighbours.
func isSpace(r rune) bool {
	return normalizer.IsSpace(r) && (r >= 0xa0 || r == ' ' || r == '\t' || r == '\n' || r == '\r')
}

// perToken is how many bytes of a text are read for each token of a limit. What is behind them would be cut off
// in all but texts of white space and unknown words.
const perToken = 128

// within returns what of a text is read for a limit.
func within(text string, limit int) string {
	if limit >= len(text)/perToken {
		return text
	}
	end := perToken * limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// Encode returns the ids of a text with the special tokens around it, at most limit in
// all: the text is cut on the right. A limit without room for the special tokens has these
// alone.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	parts := t.template.single
	room := max(0, limit-added(parts))
	ids := make([]int32, 0, min(room+8, 32+len(text)/3))
	for _, p := range parts {
		if p.ids != nil {
			ids = append(ids, p.ids...)
			continue
		}
		end := len(ids) + room
		if ids = t.appendText(ids, within(text, limit), true, end); len(ids) > end {
			ids = ids[:end]
		}
	}
	return ids
}

// EncodePair returns the ids of two texts with the special tokens between and around them,
// at most limit in all: the longer text is cut on the right until it is as short as the
// other, then both. ids[second:] are of segment 1; the model's template says from where
// on, and second is len(ids) where it knows no segments.
func (t *Tokenizer) EncodePair(a, b string, limit int) (ids []int32, second int) {
	parts := t.template.pair
	room := max(0, limit-added(parts))
	a, b = within(a, limit), within(b, limit)
	texts := [2][]int32{t.appendText(nil, a, true, room+1), t.appendText(nil, b, true, room+1)}
	if room%2 == 1 && min(len(texts[0]), len(texts[1])) > room {
		// The odd token is the longer text's: both are read to their ends.
		texts = [2][]int32{t.appendText(nil, a, true, math.MaxInt), t.appendText(nil, b, true, math.MaxInt)}
	}
	n := longestFirst(len(texts[0]), len(texts[1]), room)
	ids = make([]int32, 0, n[0]+n[1]+added(parts))
	second = -1
	for _, p := range parts {
		if second < 0 && p.kind == 1 {
			second = len(ids)
		}
		if p.ids != nil {
			ids = append(ids, p.ids...)
		} else {
			ids = append(ids, texts[p.text][:n[p.text]]...)
		}
	}
	if second < 0 {
		second = len(ids)
	}
	return ids, second
}

// longestFirst shares room out between two texts of a and b tokens, as the library does.
func longestFirst(a, b, room int) [2]int {
	if a+b <= room {
		return [2]int{a, b}
	}
	short := min(a, b)
	long := max(short, room-short)
	if short+long > room {
		short, long = room/2, room/2+room%2
	}
	if a > b {
		return [2]int{long, short}
	}
	return [2]int{short, long}
}

// appendText appends the ids of a text, up to limit or somewhat more. first says that it begins the input.
func (t *Tokenizer) appendText(ids []int32, s string, first bool, limit int) []int32 {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return t.added.around(ids, s, limit, func(ids []int32, at, end int) []int32 {
		normal := t.normalizer.String(s[at:end])
		return t.normalized.around(ids, normal, limit, func(ids []int32, from, to int) []int32 {
			for word := range t.words.Split(normal[from:to], first && at == 0 && from == 0) {
				if len(ids) >= limit {
					break
				}
				ids = t.model.Append(ids, word)
			}
			return ids
		})
	})
}

// model divides words into tokens.
type model interface {
	// Append appends the ids of one word.
	Append(ids []int32, word string) []int32
	// ID returns the id of a token.
	ID(token string) (int32, bool)
	// Size is the highest id plus one.
	Size() int
}

// Size is the number of ids, which run from 0 to Size-1. Not each of them needs to be a
// token's.
func (t *Tokenizer) Size() int { return t.size }

// Fingerprint returns the SHA-256, in hexadecimal, of what the ids depend on: of the parts
// of tokenizer.json without its truncation, padding and decoder, or of vocab.txt.
func (t *Tokenizer) Fingerprint() string { return t.fingerprint }
