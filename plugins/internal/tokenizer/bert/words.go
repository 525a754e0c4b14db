package bert

import (
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Words calls yield with the words of a text, normalised and split as BertNormalizer and
// BertPreTokenizer do: between white space, with every punctuation mark and, if
// n.Chinese, every Chinese character a word of its own. It reads the text only as far as
// yield returns true, and returns whether that was to its end. A word is valid until
// yield returns.
func (n Normalizer) Words(text string, yield func(word string) bool) bool {
	var buffer [96]byte
	for at := 0; at < len(text); {
		// A field of ASCII letters, digits and symbols, lowered on the way.
		b, i := buffer[:0], at
		for i < len(text) && ' ' < text[i] && text[i] < 0x7f {
			c := text[i]
			if n.Lower && 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			b = append(b, c)
			i++
		}
		if i == len(text) || text[i] == ' ' || n.Clean && (text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
			if len(b) > 0 && !n.eachWord(unsafe.String(&b[0], len(b)), yield) {
				return false
			}
			at = i + 1
			continue
		}
		end := n.fieldEnd(text, i)
		field := n.String(text[at:end])
		for part := range strings.FieldsFuncSeq(field, IsSpace) {
			if !n.eachWord(part, yield) {
				return false
			}
		}
		at = end
	}
	return true
}

// fieldEnd is the end of the field that byte i of the text is in or before: the next white
// space that cleaning keeps, or in a long one a Chinese character.
func (n Normalizer) fieldEnd(text string, i int) int {
	const long = 1 << 10
	for j, r := range text[i:] {
		switch {
		case j == 0:
		case IsSpace(r) && !(n.Clean && isControl(r)), j > long && n.Chinese && isChinese(r):
			return i + j
		}
	}
	return len(text)
}

// eachWord calls yield with the words of a normalised field.
func (n Normalizer) eachWord(field string, yield func(string) bool) bool {
	for field != "" {
		l := n.WordLen(field)
		if !yield(field[:l]) {
			return false
		}
		field = field[l:]
	}
	return true
}

// WordLen returns the length in bytes of the word that a normalised field, which is not
// empty and holds no white space, begins with.
func (n Normalizer) WordLen(field string) int {
	for i, r := range field {
		if IsPunct(r) || n.Chinese && isChinese(r) {
			if i == 0 {
				return utf8.RuneLen(r)
			}
			return i
		}
	}
	return len(field)
}
