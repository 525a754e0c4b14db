package pattern

import (
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/bert"
)

// GPT2 is the expression of GPT-2 (Radford et al. 2019), RoBERTa and ModernBERT.
const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+` + lookahead

// known are expressions with a scanner, which returns the length of the match at the
// beginning of a text: they match everywhere.
var known = map[string]func(string) int{
	GPT2: gpt2,
	`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+` + lookahead:                                             gpt2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+` + lookahead: func(s string) int { return llama3(s, 3) },
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+` + lookahead:      func(s string) int { return llama3(s, 1) },
}

// kind is what the expressions tell characters apart by.
type kind byte

const (
	other kind = iota
	letter
	number
	blank
)

var asciiKinds = func() (k [utf8.RuneSelf]kind) {
	for c := range k {
		k[c] = slowKind(rune(c))
	}
	return k
}()

func slowKind(r rune) kind {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case bert.IsSpace(r):
		return blank
	}
	return other
}

// kindAt returns the kind and the length of the character at byte i.
func kindAt(s string, i int) (kind, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return asciiKinds[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return slowKind(r), n
}

// run is the end of the characters of a kind from byte i, at most limit of them.
func run(s string, i int, k kind, limit int) int {
	for ; i < len(s) && limit > 0; limit-- {
		at, n := kindAt(s, i)
		if at != k {
			break
		}
		i += n
	}
	return i
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if c := s[i]; fold && 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return s[i]
	}
	switch a, b := lower(1), lower(2); {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case (a == 'r' || a == 'v') && b == 'e', a == 'l' && b == 'l':
		return 3
	case fold && len(s) >= 3 && s[1:3] == "ſ": // the long s
		return 3
	}
	return 0
}

// blanks is the end of a run of white space, without its last character where text
// follows.
func blanks(s string) int {
	last, i := 0, 0
	for i < len(s) {
		k, n := kindAt(s, i)
		if k != blank {
			break
		}
		last, i = i, i+n
	}
	if i < len(s) && last > 0 {
		return last
	}
	return i
}

func gpt2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	start := 0
	k, n := kindAt(s, 0)
	if s[0] == ' ' && len(s) > 1 {
		start = 1
		k, n = kindAt(s, 1)
	}
	if k != blank {
		return run(s, start+n, k, len(s))
	}
	return blanks(s)
}

func llama3(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	k, n := kindAt(s, 0)
	if k == letter {
		return run(s, n, letter, len(s))
	}
	if k != number && s[0] != '\r' && s[0] != '\n' && n < len(s) {
		if after, _ := kindAt(s, n); after == letter {
			return run(s, n, letter, len(s))
		}
	}
	if k == number {
		return run(s, 0, number, digits)
	}
	start := 0
	if s[0] == ' ' && len(s) > 1 {
		start = 1
		k, _ = kindAt(s, 1)
	}
	if k == other {
		return breaks(s, run(s, start, other, len(s)))
	}
	end := run(s, 0, blank, len(s)) // up to the last line break in it
	for i := end; i > 0; i-- {
		if s[i-1] == '\r' || s[i-1] == '\n' {
			return i
		}
	}
	return blanks(s)
}

// breaks is the end of the line breaks from byte i.
func breaks(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}
