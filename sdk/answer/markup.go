package answer

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// block begins a heading or an item of a list. What follows it is no digit: "- 5" may be
	// a number, and "2. 5", too.
	block = regexp.MustCompile(`^[ \t]*(?:#{1,6}|[-*+•]|\d{1,3}[.)])[ \t]+(?:[^\d\s]|$)`)
	// fenceLine begins or ends code, alone on its line but for the name of a language.
	fenceLine = regexp.MustCompile("(?m)^[ \t]*(?:```+|~~~+)[ \t]*([A-Za-z0-9_+-]*)[ \t]*\r?$")
	// element is a text within one tag, <answer>label</answer>.
	element = regexp.MustCompile(`(?s)^<([A-Za-z][\w:-]*)>(.*)</([A-Za-z][\w:-]*)>$`)
)

// unmark writes spaces over the Markdown marks of a line: headings, bullets, pairs of
// emphasis or backticks, and backslashes before punctuation. A text that is struck out
// stays so.
func unmark(line string) string {
	if !strings.ContainsAny(line, "#-*+•`_\\).") {
		return line
	}
	out := []byte(line)
	if at := block.FindStringIndex(line); at != nil {
		_, size := utf8.DecodeLastRuneInString(line[:at[1]])
		if at[1] == len(line) {
			size = 0
		}
		space(out[:at[1]-size])
	}
	for i := 0; i+1 < len(out); i++ {
		if out[i] == '\\' && out[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(out[i+1])) {
			out[i] = ' '
		}
	}
	type run struct{ at, n int }
	var open []run
	for at := 0; at < len(out); {
		c, n := out[at], 1
		if c != '*' && c != '_' && c != '`' {
			at++
			continue
		}
		for at+n < len(out) && out[at+n] == c {
			n++
		}
		before, _ := utf8.DecodeLastRuneInString(line[:at])
		after, _ := utf8.DecodeRuneInString(line[at+n:])
		opens, closes := at+n < len(out) && !unicode.IsSpace(after) && before != '\\', at > 0 && !unicode.IsSpace(before) && before != '\\'
		if c == '_' { // within a word it is a letter
			opens, closes = opens && !(at > 0 && isWordPart(before)), closes && !(at+n < len(out) && isWordPart(after))
		}
		pair := -1
		for i := len(open) - 1; closes && i >= 0 && pair < 0; i-- {
			if o := open[i]; line[o.at] == c && o.n == n {
				pair = i
			}
		}
		switch {
		case pair >= 0:
			space(out[open[pair].at : open[pair].at+n])
			space(out[at : at+n])
			open = open[:pair]
		case opens && len(open) < maxOpen:
			open = append(open, run{at, n})
		}
		at += n
	}
	return string(out)
}

// maxOpen bounds how many marks of a line are open.
const maxOpen = 64

// quotes are pairs in which texts are quoted.
var quotes = map[rune]string{
	'"': `"`, '\'': "'", '“': "”", '‘': "’", '„': "“”", '‚': "‘’", '«': "»", '»': "«", '‹': "›", '›': "‹", '「': "」", '『': "』", '”': "”", '’': "’",
}

// peel takes a final full stop or a pair of quotes from a text, and says which.
func peel(text string) (from, to int, how string, ok bool) {
	last, size := utf8.DecodeLastRuneInString(text)
	first, opening := utf8.DecodeRuneInString(text)
	switch rest := text[:len(text)-size]; {
	case last == '.' || last == '。':
		if before, _ := utf8.DecodeLastRuneInString(rest); rest == "" || before == last {
			return 0, 0, "", false
		}
		return 0, len(rest), "full stop", true
	case len(text) > opening && strings.ContainsRune(quotes[first], last):
		return opening, len(rest), "quotes", opening < len(rest)
	}
	return 0, 0, "", false
}

// trim returns what of a part of a text is no space.
func trim(text string, from, to int) (int, int) {
	part := text[from:to]
	from += len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
	return from, from + len(strings.TrimSpace(part))
}
