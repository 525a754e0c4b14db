// Package delimit puts foreign text between delimiters that the text cannot close: to a
// language model a document is material, even where it is written to be taken for
// instructions.
//
// It cannot keep a model from obeying what it reads. The prompt has to say that the text
// between the delimiters is no instruction.
package delimit

import (
	"strings"
	"unicode/utf8"
)

// Delimiters are the delimiters of one prompt: <tag> and </tag> for each of its tags.
type Delimiters struct{ tags []string }

// New returns the delimiters of tags, each a word of small letters.
func New(tags ...string) Delimiters { return Delimiters{tags} }

// The characters that a mark begins with, and those that become one of them in a
// tokenizer that normalises text (NFKC).
const (
	plain = "<["
	wide  = "＜﹤［"
)

// Escape returns a text in which nothing is a mark, that is a delimiter or a control
// token: the first character of each is written as an entity. What differs from a mark
// only in the forms of its characters (NFKC) or by invisible characters is one, too.
func (d Delimiters) Escape(text string) string {
	first := plain // far faster to search than all
	for _, r := range wide {
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
