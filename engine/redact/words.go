package redact

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words replaces forms of short secrets where they are no part of a longer word.
type words struct {
	forms   map[string]bool
	lengths []int // of the forms, the longest first
}

func newWords(forms []string) words {
	w := words{forms: map[string]bool{}}
	for _, form := range forms {
		w.forms[form] = true
		w.lengths = append(w.lengths, len(form))
	}
	slices.SortFunc(w.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	w.lengths = slices.Compact(w.lengths)
	return w
}

// replace leaves the placeholders that stand in a text already.
func (w words) replace(text string) string {
	if len(w.forms) == 0 {
		return text
	}
	parts := strings.Split(text, Placeholder)
	for i, part := range parts {
		parts[i] = w.replaceIn(part)
	}
	return strings.Join(parts, Placeholder)
}

func (w words) replaceIn(text string) string {
	var b strings.Builder
	kept := 0
	for at := 0; at < len(text); at++ {
		if within(text, at) {
			continue
		}
		for _, n := range w.lengths {
			if end := at + n; end <= len(text) && w.forms[text[at:end]] && !within(text, end) {
				b.WriteString(text[kept:at] + Placeholder)
				kept, at = end, end-1
				break
			}
		}
	}
	return b.String() + text[kept:]
}

// within reports whether a place is in the middle of a word. Names of fields and headers, as max_tokens and
// x-api-key, are one.
func within(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
