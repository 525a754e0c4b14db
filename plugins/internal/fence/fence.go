// Package fence puts foreign text between delimiters that the text cannot close:
// what is in a document that a language model reads is material, also where it
// is written to be taken for instructions.
//
// It cannot keep a model from obeying what it reads. That the text between the
// delimiters is no instruction is for the prompt to say.
package fence

import (
	"regexp"
	"strings"
)

// control are tokens of the control of chats: some servers take them for what
// they say wherever they stand.
const control = `<[|｜][^\s<>|｜]{1,60}[|｜]>|<(?:start|end)_of_turn>|</?s>|\[/?INST\]`

// Fence are the delimiters of one prompt: <tag> and </tag> for each of its tags.
type Fence struct{ marks *regexp.Regexp }

// New returns the fence of tags, each a word of letters.
func New(tags ...string) Fence {
	return Fence{regexp.MustCompile(`(?i)<\s*/?\s*(?:` + strings.Join(tags, "|") + `)|` + control)}
}

// Inert returns a text in which nothing is a delimiter of the fence or a token
// of control: the first character of what would be is written as an entity.
func (f Fence) Inert(text string) string {
	return f.marks.ReplaceAllStringFunc(text, func(mark string) string {
		if mark[0] == '[' {
			return "&#91;" + mark[1:]
		}
		return "&lt;" + mark[1:]
	})
}

// Around is a text, made inert, between the delimiters of one of the tags.
func (f Fence) Around(tag, text string) string {
	return "<" + tag + ">\n" + strings.Trim(f.Inert(text), "\r\n") + "\n</" + tag + ">"
}
