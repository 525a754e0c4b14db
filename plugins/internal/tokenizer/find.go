package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/bert"
	"github.com/racflow/racflow/plugins/internal/tokenizer/pretokenizer"
)

// addedTokens finds tokens in a text.
type addedTokens struct {
	tokens []addedToken // sorted by content
	begins [256]bool    // bytes that some token begins with
	size   int          // the highest id plus one
}

func newAddedTokens(tokens []addedToken) *addedTokens {
	slices.SortStableFunc(tokens, func(a, b addedToken) int { return cmp.Compare(a.Content, b.Content) })
	a := &addedTokens{tokens: tokens}
	for _, t := range tokens {
		a.begins[t.Content[0]] = true
		a.size = max(a.size, int(t.ID)+1)
	}
	return a
}

// found is a token in a text, with the white space that it takes.
type found struct {
	id         int32
	start, end int
}

// next returns the first token in s behind byte at, and whether there is one. What is
// before at is text of tokens that were found before.
func (a *addedTokens) next(s string, at int) (found, bool) {
	if len(a.tokens) == 0 {
		return found{}, false
	}
	for i := at; i < len(s); {
		if !a.begins[s[i]] {
			i++
			continue
		}
		t := a.longest(s[i:])
		if t == nil {
			i++
			continue
		}
		end := i + len(t.Content)
		if t.SingleWord && (endsInWord(s[:i]) || beginsWithWord(s[end:])) {
			i = end
			continue
		}
		f := found{t.ID, i, end}
		if t.Left {
			f.start = at + len(strings.TrimRightFunc(s[at:i], bert.IsSpace))
		}
		if t.Right {
			f.end = len(s) - len(strings.TrimLeftFunc(s[end:], bert.IsSpace))
		}
		return f, true
	}
	return found{}, false
}

// longest returns the longest token that s begins with, or nil. It narrows the sorted
// tokens down byte by byte.
func (a *addedTokens) longest(s string) (best *addedToken) {
	low, high := 0, len(a.tokens)
	for n := 0; low < high; n++ {
		if len(a.tokens[low].Content) == n {
			best = &a.tokens[low]
			low++
		}
		if n == len(s) {
			break
		}
		tokens := a.tokens[low:high]
		first, _ := slices.BinarySearchFunc(tokens, s[n], func(t addedToken, c byte) int { return cmp.Compare(t.Content[n], c) })
		end, _ := slices.BinarySearchFunc(tokens[first:], s[n], func(t addedToken, c byte) int {
			if t.Content[n] > c {
				return 1
			}
			return -1
		})
		low, high = low+first, low+first+end
	}
	return best
}

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && pretokenizer.IsWord(r)
}

func beginsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && pretokenizer.IsWord(r)
}

// local reports whether no token goes beyond a single space between ASCII letters.
func (a *addedTokens) local() bool {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	for _, t := range a.tokens {
		for i := range len(t.Content) - 1 {
			if rest := t.Content[i+1:]; letter(t.Content[i]) && (rest[0] == ' ' || strings.HasPrefix(rest, "▁")) {
				return false
			}
		}
		if t.Right && letter(t.Content[len(t.Content)-1]) {
			return false
		}
	}
	return true
}
