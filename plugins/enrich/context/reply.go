package context

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/sentence"
	"github.com/racflow/racflow/sdk"
)

// maxCharacters bounds an answer of a server that ignores limits.
const maxCharacters = 2000

// contextOf returns the context that a reply holds, in one line.
func contextOf(r dialect.Choice) (string, error) {
	text, err := r.Written()
	if err != nil {
		return "", err
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasSuffix(strings.TrimSpace(first), ":") {
		text = rest // without the introduction
	}
	text = fewshot.OneLine(text)
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' && strings.Count(text, `"`) == 2 {
		text = strings.TrimSpace(text[1 : n-1])
	}
	if !fewshot.HasWord(text) {
		return "", sdk.Invalid(errors.New("the model's answer says nothing"))
	}
	if utf8.RuneCountInString(text) > maxCharacters {
		return wholeSentences(fewshot.Clip(text, maxCharacters)), nil
	}
	if r.Cut() {
		return wholeSentences(text), nil
	}
	return text, nil
}

// wholeSentences is a truncated text up to its last whole sentence, or its last whole
// word where it has no sentence.
func wholeSentences(text string) string {
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
