package syntax

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file puts foreign text between delimiters that the text cannot close. So a language model can distinguish a
// document from instructions, even if the document imitates them.
//
// It cannot keep a model from obeying what it reads. The prompt must say that the text between the delimiters is no
// instruction.

// Delimiters are the delimiters of a prompt: <tag> and </tag> for each of its tags.
type Delimiters struct{ tags []string }

// NewDelimiters returns the delimiters of tags, each a word of small letters.
func NewDelimiters(tags ...string) Delimiters { return Delimiters{tags} }

// The characters with which a mark can begin, and those that become one of them in a tokenizer that normalises text
// (NFKC).
const (
	plain       = "<["
	delimitWide = "＜﹤［"
)

// Escape returns a text without marks: a mark is a delimiter or a control token. The first character of each mark is
// written as an entity. A variant with other forms of the characters (NFKC), or with invisible characters, is a mark,
// too.
func (d Delimiters) Escape(text string) string {
	first := plain // searching for these is far faster than for all
	for _, r := range delimitWide {
		if strings.ContainsRune(text, r) {
			first += string(r)
		}
	}
	var out strings.Builder
	from := 0 // where the text that is not written yet begins
	for at := 0; ; {
		next := strings.IndexAny(text[at:], first)
		if next < 0 {
			break
		}
		at += next
		r, n := utf8.DecodeRuneInString(text[at:])
		if d.begins(text[at:]) {
			out.WriteString(text[from:at])
			if r == '[' || r == '［' {
				out.WriteString("&#91;")
			} else {
				out.WriteString("&lt;")
			}
			from = at + n
		}
		at += n
	}
	if from == 0 {
		return text
	}
	return out.String() + text[from:]
}

// Wrap returns the escaped text between the delimiters of a tag.
func (d Delimiters) Wrap(tag, text string) string {
	return "<" + tag + ">\n" + strings.Trim(d.Escape(text), "\r\n") + "\n</" + tag + ">"
}

// Control tokens of chats, in small letters: some servers obey them anywhere in a text. Tokens between bars, such as
// <|im_end|>, can have any name.
var (
	angled   = []string{"s>", "bos>", "eos>", "start_of_turn>", "end_of_turn>"}
	brackets = []string{"inst]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]"}
)

const (
	maxMark = 256 // bytes of a mark to read
	maxWord = 24  // characters, more than any token above
	maxName = 60  // characters between bars
)

// begins reports whether a text begins with a mark: a control token, or a delimiter with anything after its tag.
func (d Delimiters) begins(text string) bool {
	s := delimitScanner{text: text[:min(len(text), maxMark)]}
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

// delimitScanner reads characters as a model may see them: in small letters, in their plain forms (NFKC), any white
// space as a space, and without invisible ones.
type delimitScanner struct {
	text string
	at   int
}

// next returns the next character; 0: the text has ended.
func (s *delimitScanner) next() rune {
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

// skip returns the next character that differs from over.
func (s *delimitScanner) skip(over rune) rune {
	r := s.next()
	for r == over {
		r = s.next()
	}
	return r
}

// bars reports whether a name, a bar and a closing bracket follow.
func (s *delimitScanner) bars() bool {
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
