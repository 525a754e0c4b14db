package analyze

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class says what a character does in a word.
type class uint8

const (
	separator class = iota
	underscore
	lower // and letters without case
	upper
	digit
	mark  // goes on with what stands before it
	alone // a word by itself
)

// ascii holds the classes of the characters that most texts consist of.
var ascii = func() (table [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		table[r] = classify(r)
	}
	return table
}()

func classify(r rune) class {
	switch {
	case r == '_':
		return underscore
	case unicode.In(r, unicode.Han, unicode.Hiragana) && unicode.IsLetter(r):
		return alone
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.IsNumber(r):
		return digit
	case unicode.IsMark(r):
		return mark
	}
	return separator
}

// first returns the class and the size in bytes of the first character.
func first(text string) (class, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, size := utf8.DecodeRuneInString(text)
	return classify(r), size
}

// next returns the first word of a text and what follows it; an empty word
// means that there is none. With names, underscores belong to words.
func next(text string, names bool) (word, rest string) {
	start := -1
	for i := 0; i < len(text); {
		c, size := first(text[i:])
		if c == underscore && !names {
			c = separator
		}
		inside := start >= 0
		switch {
		case inside && (c == separator || c == alone):
			return text[start:i], text[i:]
		case c == alone:
			size += marks(text[i+size:])
			return text[i : i+size], text[i+size:]
		case !inside && c != separator && c != mark:
			start = i
		}
		i += size
	}
	if start < 0 {
		return "", ""
	}
	return text[start:], ""
}

// marks returns how many bytes of marks a text begins with.
func marks(text string) int {
	n := 0
	for n < len(text) {
		c, size := first(text[n:])
		if c != mark {
			break
		}
		n += size
	}
	return n
}

// nextPart returns the first part of a name, which does not begin with an
// underscore, and the parts that follow it. A part ends where letters and
// digits meet, before a capital after a small letter (camel|Case), and before
// the last of several capitals if a small letter follows (HTTP|Server).
func nextPart(name string) (part, rest string) {
	before, last := separator, 0 // the class and the place of the character before
	for i := 0; i < len(name); {
		c, size := first(name[i:])
		switch {
		case c == underscore:
			return name[:i], strings.TrimLeft(name[i:], "_")
		case c == mark:
			i += size
			continue
		case before == upper && c == lower && last > 0:
			return name[:last], name[last:]
		case before == upper && c == lower, before == c, before == separator:
		default:
			return name[:i], name[i:]
		}
		before, last = c, i
		i += size
	}
	return name, ""
}
