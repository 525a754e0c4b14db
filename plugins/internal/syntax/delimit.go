package syntax

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file puts foreign text between delimiters that the text cannot close: to a
// language model a document is material, even where it is written to be taken for
// instructions.
//
// It cannot keep a model from obeying what it reads. The prompt has to say that the text
// between the delimiters is no instruction.

// Delimiters are the delimiters of one prompt: <tag> and </tag> for each of its tags.
type Delimiters struct{ tags []string }

// NewDelimiters returns the delimiters of tags, each a word of small letters.
func NewDelimiters(tags ...string) Delimiters { return Delimiters{tags} }

// The characters that a mark begins with, and those that become one of them in a
// tokenizer that normalises text (NFKC).
const (
	plain       = "<["
	delimitWide = "＜﹤［"
)

// Escape returns a text in which nothing is a mark, that is a delimiter or a control
// token: the first character of each is written as an entity. What differs from a mark
// only in the forms of its characters (NFKC) or by invisible characters is one, too.
func (d Delimiters) Escape(text string) string {
	first := plain // far faster to search than all
	for _, r := range delimitWide {
		if strings.ContainsRune(text, r) {
			first += string(r)
		}
	}
	var out strings.Builder
	from := 0 // what is not written yet
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

// Wrap is a text, escaped, between the delimiters of one of the tags.
func (d Delimiters) Wrap(tag, text string) string {
	return "<" + tag + ">\n" + strings.Trim(d.Escape(text), "\r\n") + "\n</" + tag + ">"
}

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

// delimitScanner reads characters as a model may see them: in small letters, in their plain
// forms (NFKC), all white space as a space, without invisible ones.
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

// skip returns the next character that is not over.
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
