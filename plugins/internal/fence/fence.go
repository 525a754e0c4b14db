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
type Fence struct{ mark *regexp.Regexp }

// longest is what a mark has at most, in bytes, as far as it has to be seen.
const longest = 256

// New returns the fence of tags, each a word of letters.
func New(tags ...string) Fence {
	return Fence{regexp.MustCompile(`\A(?i:<\s{0,32}/?\s{0,32}(?:` + strings.Join(tags, "|") + `)|` + control + `)`)}
}

// Inert returns a text in which nothing is a delimiter of the fence or a token
// of control: the first character of what would be is written as an entity.
func (f Fence) Inert(text string) string {
	var out strings.Builder
	from := 0 // what is not written yet
	for at := 0; ; at++ {
		next := strings.IndexAny(text[at:], "<[") // far faster than the expression, and there are few
		if next < 0 {
			break
		}
		at += next
		if !f.mark.MatchString(text[at:min(at+longest, len(text))]) {
			continue
		}
		out.WriteString(text[from:at])
		if text[at] == '[' {
			out.WriteString("&#91;")
		} else {
			out.WriteString("&lt;")
		}
		from = at + 1
	}
	if from == 0 {
		return text
	}
	return out.String() + text[from:]
}

// Around is a text, made inert, between the delimiters of one of the tags.
func (f Fence) Around(tag, text string) string {
	return "<" + tag + ">\n" + strings.Trim(f.Inert(text), "\r\n") + "\n</" + tag + ">"
}
