package wordpiece

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// words yields the words of a text as BERT's uncased tokenizer sees them:
// without control characters and accents, in lower case, and with every
// punctuation mark and every Chinese character a word of its own.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for field := range strings.FieldsFuncSeq(text, isSpace) {
			field = normalise(field)
			for field != "" {
				n := wordLen(field)
				if !yield(field[:n]) {
					return
				}
				field = field[n:]
			}
		}
	}
}

// wordLen returns the length in bytes of the word that s, not empty, begins with.
func wordLen(s string) int {
	for i, r := range s {
		if standsAlone(r) {
			if i == 0 {
				return utf8.RuneLen(r)
			}
			return i
		}
	}
	return len(s)
}

// normalise returns s, which holds no spaces, without control characters and
// accents and in lower case. Accents go by canonical decomposition, so that
// other characters are decomposed too, Hangul among them.
func normalise(s string) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, s)
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return unicode.ToLower(r)
		}
		if isMark(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(s))
}

// isSpace reports whether r separates words. Other white space counts as a
// control character and is dropped, which joins its neighbours.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\r', ' ':
		return true
	}
	return r >= utf8.RuneSelf && unicode.IsSpace(r) && !unicode.Is(unicode.Cc, r)
}

// isControl reports whether the tokenizer drops r. Bytes that are not UTF-8
// arrive as the replacement character and are dropped with it.
func isControl(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return r == utf8.RuneError ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && !unicode.Is(newer, r)
}

// isMark reports whether r is an accent. The original's tables still count one
// Philippine vowel sign among them.
func isMark(r rune) bool {
	return unicode.Is(unicode.Mn, r) && !unicode.Is(newer, r) || r == 0x1734
}

// standsAlone reports whether r is a word of its own. All ASCII symbols are, of
// the others only punctuation, and a Canadian sign that was punctuation once.
func standsAlone(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && !('0' <= r && r <= '9') && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
	}
	return unicode.IsPunct(r) && !unicode.Is(newer, r) || isChinese(r) || r == 0x166D
}

// isChinese reports whether r is in one of the CJK blocks that BERT splits at.
func isChinese(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B73F ||
		0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}
