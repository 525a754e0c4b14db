package delimit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Control tokens of chats, in small letters: some servers obey them wherever they stand.
// Those between bars, such as <|im_end|>, can have any name.
var (
	angled   = []string{"s>", "bos>", "eos>", "start_of_turn>", "end_of_turn>"}
	brackets = []string{"inst]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]"}
)

const (
	maxMark = 256 // bytes of a mark that are read
	maxWord = 24  // characters, more than those above
	maxName = 60  // characters between bars
)

// begins reports whether a text begins with a mark: a control token, or a delimiter,
// whatever is behind its tag.
func (d Delimiters) begins(text string) bool {
	s := scanner{text: text[:min(len(text), maxMark)]}
	first := s.next()
	r := s.skip(' ')
	if r == '|' && first == '<' {
		return s.bars()
	}
	if r == '/' {
		r = s.skip(' ')
	}
	var word strings.Builder
	for n := 0; r == '_' || r == '>' || r == ']' || unicode.IsLetter(r); r = s.next() {
		word.WriteRune(r)
		if n++; n == maxWord || r == '>' || r == ']' {
			break
		}
	}
	starts := func(mark string) bool { return strings.HasPrefix(word.String(), mark) }
	if first == '[' {
		return slices.ContainsFunc(brackets, starts)
	}
	return slices.ContainsFunc(d.tags, starts) || slices.ContainsFunc(angled, starts)
}

var invisible = []*unicode.RangeTable{unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// scanner reads characters as a model may see them: in small letters, in their plain
// forms (NFKC), all white space as a space, without invisible ones.
type scanner struct {
	text string
	at   int
}

// next returns the next character; 0: the text has ended.
func (s *scanner) next() rune {
	for s.at < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.at:])
		s.at += n
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || r >= utf8.RuneSelf && unicode.In(r, invisible...):
			continue
		case r >= utf8.RuneSelf:
			r, _ = utf8.DecodeRuneInString(norm.NFKC.String(string(r)))
		}
		return unicode.ToLower(r)
	}
	return 0
}

// skip returns the next character that is not over.
func (s *scanner) skip(over rune) rune {
	r := s.next()
	for r == over {
		r = s.next()
	}
	return r
}

// bars reports whether a name, a bar and a closing bracket follow.
func (s *scanner) bars() bool {
	for n := range maxName + 1 {
		switch s.next() {
		case '|':
			return n > 0 && s.next() == '>'
		case ' ', '<', '>', 0:
			return false
		}
	}
	return false
}
