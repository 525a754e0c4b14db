package normalizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// This file cleans and splits texts like BERT's tokenizers: it is the normalizer BertNormalizer of tokenizer.json.
// The pre-tokenizer BertPreTokenizer uses its character classes.
//
// It follows the tables of the tokenizers library, which are older than today's Unicode. About sixty characters that
// are newer than Go's own tables may get another case or class than in the library. A test compares every character
// with the library.

// Bert normalises texts like the library's BertNormalizer. The zero value changes nothing.
type Bert struct {
	Clean   bool // drop control characters, and replace all white space by spaces
	Chinese bool // put spaces around Chinese characters
	Strip   bool // decompose characters and drop accents; also decomposes Hangul
	Lower   bool // lower case
}

// IsSpace reports whether r is white space in Unicode.
func IsSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r'
	}
	return unicode.IsSpace(r)
}

// isPunct reports whether r is punctuation: every ASCII symbol, Unicode's punctuation, and a Canadian sign that was
// punctuation in earlier versions of Unicode.
func isPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && !('0' <= r && r <= '9') && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
	}
	return unicode.IsPunct(r) && unicode.Is(unicode8, r) || r == 0x166D
}

// isControl reports whether cleaning drops r. Bytes that are not UTF-8 arrive as the replacement character and are
// dropped, too.
func isControl(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
	}
	return r == utf8.RuneError ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && unicode.Is(unicode8, r)
}

// isAccent reports whether r is an accent. The library's tables still contain one Philippine vowel sign, and do not
// yet contain two Mongolian signs and a Javanese one.
func isAccent(r rune) bool {
	return unicode.Is(unicode.Mn, r) && unicode.Is(unicode8, r) && r != 0x1885 && r != 0x1886 && r != 0xA9BD || r == 0x1734
}

// isChinese reports whether r is in one of the CJK blocks that BERT splits at.
func isChinese(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B73F ||
		0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

// appendLower appends the lower case of r as UTF-8. The Turkish İ becomes two characters.
func appendLower(b []byte, r rune) []byte {
	if r == 'İ' {
		return append(b, "i\u0307"...)
	}
	return utf8.AppendRune(b, unicode.ToLower(r))
}

// unicode8 holds the characters of Unicode 8, which the original tokenizer's tables know. Later characters stay
// unchanged inside words.
var unicode8 = rangetable.Assigned("8.0.0")

// String returns the normalised text.
func (n Bert) String(text string) string {
	b := make([]byte, 0, len(text)+len(text)/8)
	for _, r := range text {
		switch {
		case n.Clean && isControl(r):
		case n.Clean && IsSpace(r):
			b = append(b, ' ')
		case n.Chinese && isChinese(r):
			b = append(utf8.AppendRune(append(b, ' '), r), ' ')
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	if n.Strip || n.Lower {
		b = n.fold(b)
	}
	return string(b)
}

// fold drops accents and lower-cases letters, if n says so. It may reuse the memory of s.
func (n Bert) fold(s []byte) []byte {
	if n.Strip && !norm.NFD.IsNormal(s) {
		s = norm.NFD.Bytes(s)
	}
	if ascii(s) {
		if n.Lower {
			for i, c := range s {
				if 'A' <= c && c <= 'Z' {
					s[i] = c + 'a' - 'A'
				}
			}
		}
		return s
	}
	b := make([]byte, 0, len(s)+8)
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		s = s[size:]
		switch {
		case n.Strip && isAccent(r):
		case n.Lower:
			b = appendLower(b, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func ascii(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
