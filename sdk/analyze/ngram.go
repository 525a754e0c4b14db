package analyze

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendNgram adds the pairs of neighbouring letters of each run of letters
// that are written without spaces, or its only letter, and the other words
// whole.
func appendNgram(words []string, text string) []string {
	text = strings.ToLower(text)
	word := -1           // where the word at hand starts; -1: in none
	run, before := 0, -1 // letters of the run at hand, and where its last one starts
	end := func(i int) {
		if word >= 0 {
			words = append(words, text[word:i])
		}
		if run == 1 {
			words = append(words, text[before:i])
		}
		word, run = -1, 0
	}
	for i := 0; i < len(text); {
		c, size, spaced := firstSpaced(text[i:])
		switch {
		case !spaced:
			if word >= 0 {
				end(i)
			}
			size += marks(text[i+size:])
			if run > 0 {
				words = append(words, text[before:i+size])
			}
			run, before = run+1, i
		case c == separator || c == underscore:
			end(i)
		case word < 0 && c != mark:
			end(i)
			word = i
		}
		i += size
	}
	end(len(text))
	return words
}

// firstSpaced is first, and tells whether the character is of a script that
// separates words by spaces.
func firstSpaced(text string) (c class, size int, spaced bool) {
	if text[0] < utf8.RuneSelf {
		return ascii[text[0]], 1, true
	}
	r, size := utf8.DecodeRuneInString(text)
	return classify(r), size, !unspaced(r)
}

// unspaced reports whether a letter belongs to a script that is written
// without spaces, or to Hangul, whose spaces do not part a word from its
// particles.
func unspaced(r rune) bool {
	switch {
	case r < firstThai:
		return false
	case r == 'ー', r == '〆', '〱' <= r && r <= '〵': // shared by scripts, so of none
		return true
	}
	return (unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)) && unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

const firstThai = '\u0E00' // the lowest block of these scripts
