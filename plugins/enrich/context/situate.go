package context

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/sentence"
	"github.com/racflow/racflow/sdk"
)

// maxCharacters bounds an answer of a server that heeds no limit.
const maxCharacters = 2000

// situating returns the context that a reply holds, in one line.
func situating(r chatmodel.Reply) (string, error) {
	text, err := r.Written()
	if err != nil {
		return "", err
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasSuffix(strings.TrimSpace(first), ":") {
		text = rest // an introduction, though none was wanted
	}
	text = fewshot.OneLine(text)
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' && strings.Count(text, `"`) == 2 {
		text = strings.TrimSpace(text[1 : n-1])
	}
	if !fewshot.HasWord(text) {
		return "", sdk.Invalid(errors.New("the model's answer says nothing"))
	}
	if utf8.RuneCountInString(text) > maxCharacters {
		return whole(fewshot.Clip(text, maxCharacters)), nil
	}
	if r.Cut() {
		return whole(text), nil
	}
	return text, nil
}

// whole is a text that was cut, up to its last whole sentence, or its last whole
// word where it has no sentence.
func whole(text string) string {
	end := 0
	for p := sentence.Next(text, 0, len(text)); p > 0; p = sentence.Next(text, p, len(text)) {
		end = p
	}
	if end == 0 {
		if end = strings.LastIndexByte(text, ' '); end < 0 {
			return text
		}
	}
	return strings.TrimSpace(text[:end])
}
