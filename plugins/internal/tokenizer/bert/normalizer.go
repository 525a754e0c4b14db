package bert

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalizer prepares texts as the library's BertNormalizer does. The zero value changes
// nothing.
type Normalizer struct {
	Clean   bool // drop control characters, and make every white space a space
	Chinese bool // put spaces around Chinese characters
	Strip   bool // decompose characters and drop accents; Hangul is decomposed, too
	Lower   bool // lower case
}

// Uncased is the normalizer of BERT's uncased models.
var Uncased = Normalizer{Clean: true, Chinese: true, Strip: true, Lower: true}

// String returns the normalised text.
func (n Normalizer) String(text string) string {
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

// fold drops accents and turns letters into lower case, as far as n wants it. It may use
// the memory of s.
func (n Normalizer) fold(s []byte) []byte {
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
		case n.Strip && isMark(r):
		case n.Lower:
			b = AppendLower(b, r)
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
