package tokenspan

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/sentence"
)

// Break is a kind of position where a text may be cut.
type Break struct {
	// last is the last such position p with low < p <= high, or -1.
	last  func(text string, low, high int) int
	first func(text string, low, high int) int // the first of them; nil: last finds it
	fine  bool                                 // used only where there is no other
}

// firstIn is the first break p with low < p <= high, or -1.
func (b Break) firstIn(text string, low, high int) int {
	if b.first != nil {
		return b.first(text, low, high)
	}
	for found := -1; ; {
		p := b.last(text, low, high)
		if p < 0 {
			return found
		}
		found, high = p, p-1
	}
}

// The kinds of breaks, strongest first: behind an empty line, a line, a sentence,
// white space.
var (
	Paragraphs = Break{last: lastParagraph}
	Lines      = Break{last: func(text string, low, high int) int { return lastLiteral(text, "\n", low, high) }}
	Sentences  = Break{last: lastSentence, first: sentence.Next}
	Words      = Break{last: lastWord, fine: true}
)

// Literal is a break behind a text, such as a line of dashes.
func Literal(separator string) Break {
	return Break{last: func(text string, low, high int) int { return lastLiteral(text, separator, low, high) }}
}

func lastLiteral(text, separator string, low, high int) int {
	from := max(0, low-len(separator)+1)
	i := strings.LastIndex(text[from:high], separator)
	if i < 0 || from+i+len(separator) <= low {
		return -1
	}
	return from + i + len(separator)
}

// lastParagraph is behind the last line of white space alone.
func lastParagraph(text string, low, high int) int {
	for p := high; p > low; {
		p = lastLiteral(text, "\n", low, p)
		if p < 0 {
			return -1
		}
		lineStart := strings.LastIndexByte(text[max(0, low-1):p-1], '\n')
		if lineStart >= 0 || low == 0 {
			if strings.TrimSpace(text[max(0, low-1)+lineStart+1:p]) == "" {
				return p
			}
		}
		p--
	}
	return -1
}

func lastSentence(text string, low, high int) int {
	found := -1
	for p := low; ; {
		if p = sentence.Next(text, p, high); p < 0 {
			return found
		}
		if p > low {
			found = p
		}
	}
}

func lastWord(text string, low, high int) int {
	for p := high; p > low; {
		r, n := utf8.DecodeLastRuneInString(text[:p])
		if unicode.IsSpace(r) {
			return p
		}
		p -= n
	}
	return -1
}
