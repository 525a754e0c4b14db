package delimit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Tokens of the control of chats, in small letters: some servers take them for what
// they say wherever they stand. Those between bars, as <|im_end|>, have any name.
var (
	angled   = []string{"s>", "bos>", "eos>", "start_of_turn>", "end_of_turn>"}
	brackets = []string{"inst]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]"}
)

const (
	longest     = 256 // bytes of a mark, as far as it is looked at
	longestWord = 24  // characters, more than those above
	longestName = 60  // characters between bars
)

// begins reports whether a text begins with a mark: a delimiter, whatever is behind
// its tag, or a token of control.
func (d Delimiters) begins(text string) bool {
	s := scanner{text: text[:min(len(text), longest)]}
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
		if n++; n == longestWord || r == '>' || r == ']' {
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

// scanner reads characters as a model may see them: in small letters, in their
// plain forms (NFKC), all white space as a space, and none that is invisible.
type scanner struct {
	text string
	at   int
}

// next returns the next character; 0: there is none.
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

// skip returns the next character that is another one.
func (s *scanner) skip(over rune) rune {
	r := s.next()
	for r == over {
		r = s.next()
	}
	return r
}

// bars reports whether a name follows, a bar and a closing bracket.
func (s *scanner) bars() bool {
	for n := range longestName + 1 {
		switch s.next() {
		case '|':
			return n > 0 && s.next() == '>'
		case ' ', '<', '>', 0:
			return false
		}
	}
	return false
}
