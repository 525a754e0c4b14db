package tokenizer

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

// Tokenizer converts texts into ids. It is read-only and safe for concurrent use.
type Tokenizer struct {
	added      *addedTokens // found in the original text
	normalized *addedTokens // found in the normalised text
	normalizer *normalizer.Normalizer
	words      *normalizer.PreTokenizer
	model      model
	template   template

	bert        *normalizer.Bert // the normalizer, if it is BERT's
	prefix      *bool            // if the pre-tokenizer is ByteLevel: whether it puts a space before texts
	size        int
	fingerprint string
}

// Each calls begin with the byte positions in text where tokens begin, in order, each position once. It has no limit
// and ignores the template's special tokens.
//
// The tokens between two white spaces are counted and spread evenly over the bytes there. A word longer than 100
// characters counts as several words, since many models read it as one unknown token.
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
			field = text[at-1 : end] // models read the space together with the word
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

// fieldEnd returns where the characters from a byte on that are no white space end, or the first 100 of them.
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

// isSpace reports whether r separates words. Control characters do not, except line breaks and tabs: BERT drops
// control characters, which joins the words around them.
func isSpace(r rune) bool {
	return normalizer.IsSpace(r) && (r >= 0xa0 || r == ' ' || r == '\t' || r == '\n' || r == '\r')
}

// perToken is how many bytes of a text are read for each token of a limit. Only texts of white space and unknown
// words would have tokens within the limit after these bytes.
const perToken = 128

// within returns the part of a text that is read for a limit.
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

// Encode returns the ids of a text with its special tokens, at most limit in all. The text is truncated on the right.
// If the limit leaves no room for text, the result has only the special tokens.
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

// EncodePair returns the ids of two texts with the special tokens between and around them, at most limit in all. The
// longer text is truncated on the right until both have the same length, then both. ids[second:] belong to segment 1.
// The model's template decides where it begins; second is len(ids) if the template has no segments.
func (t *Tokenizer) EncodePair(a, b string, limit int) (ids []int32, second int) {
	parts := t.template.pair
	room := max(0, limit-added(parts))
	a, b = within(a, limit), within(b, limit)
	texts := [2][]int32{t.appendText(nil, a, true, room+1), t.appendText(nil, b, true, room+1)}
	if room%2 == 1 && min(len(texts[0]), len(texts[1])) > room {
		// The longer text keeps the odd token, so both texts are read to their ends.
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

// longestFirst divides room between two texts of a and b tokens, like the library.
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

// appendText appends the ids of a text, up to limit or a little more. first says whether the text begins the input.
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

// Size is the number of ids, which run from 0 to Size-1. Some of them may belong to no token.
func (t *Tokenizer) Size() int { return t.size }

// Fingerprint returns the SHA-256, in hexadecimal, of everything that the ids depend on: the parts of tokenizer.json
// except truncation, padding and decoder, or vocab.txt.
func (t *Tokenizer) Fingerprint() string { return t.fingerprint }
