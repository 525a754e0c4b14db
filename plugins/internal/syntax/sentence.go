package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file finds the ends of sentences, by rules. A sentence ends
//
//   - after . ! ? or … with closing characters (quotes, brackets), if white space follows and the next character is
//     not a small letter;
//   - not after a single capital letter (J. Smith), not after an abbreviation that a name or a number usually follows
//     (Dr., e.g., Fig., No.), and not after a number that begins a line (1. First);
//   - after 。 ！ ？ ． ｡ of Chinese and Japanese, with closing characters, and after the danda of Hindi, whatever follows;
//   - after an empty line, always. A single line break ends no sentence.
//
// Decimals, versions, domains and 3 p.m. in the middle of a sentence have no white space after the point, or a small
// letter after it. The rules read only a few characters around a position, so finding all sentences takes linear
// time. The rules are for European and East Asian languages. They fail where a sentence ends in an abbreviation.

// reach is how many bytes around a position the rules read.
const reach = 64

// abbreviations, in small letters, do not end a sentence.
var abbreviations = set(`mr mrs ms dr prof st sr jr rev hon gen col sgt capt lt cmdr gov sen rep
	e.g i.e eg ie cf vs viz al resp approx ca fig figs eq eqs sec ch chap no nos vol vols pp ed eds
	art dept est inc ltd co corp jan feb mar apr jun jul aug sep sept oct nov dec
	z.b d.h u.a bzw nr abb bspw vgl hr fr str p.ex m mme mlle`)

func set(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[w] = true
	}
	return all
}

// NextSentence returns the first end p of a sentence with from < p <= limit, or -1. The end is after the white space
// that follows the sentence, up to the first line break.
func NextSentence(text string, from, limit int) int {
	for i := max(0, from-1); i < limit; {
		c := text[i]
		switch {
		case c == '\n':
			if p := emptyLine(text, i); p > from && p <= limit {
				return p
			}
			i++
		case c == '.' || c == '!' || c == '?' || c >= utf8.RuneSelf && isMark(text[i:]):
			p := end(text, i)
			if p > limit {
				return -1
			}
			if p > from {
				return p
			}
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
		default:
			i++
		}
	}
	return -1
}

// emptyLine returns the position after the white space that begins with the line break at i, or 0 if that has no
// second line break.
func emptyLine(text string, i int) int {
	p, breaks := i, 0
	for p < len(text) && (text[p] == '\n' || text[p] == '\r' || text[p] == ' ' || text[p] == '\t') {
		if text[p] == '\n' {
			if breaks++; breaks == 2 {
				return p + 1
			}
		}
		if p++; p-i > reach {
			break
		}
	}
	return 0
}

func isMark(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '…' || sentenceWide(r)
}

// sentenceWide reports whether a mark ends a sentence even if no white space follows.
func sentenceWide(r rune) bool {
	switch r {
	case '。', '！', '？', '．', '｡', '।', '॥':
		return true
	}
	return false
}

func closes(r rune) bool {
	switch r {
	case '"', '\'', ')', ']', '}', '*', '_', '»':
		return true
	}
	return unicode.In(r, unicode.Pe, unicode.Pf)
}

// end returns where the sentence with the mark at i ends, or 0 if it continues.
func end(text string, i int) int {
	mark, n := utf8.DecodeRuneInString(text[i:])
	p, stop := i+n, min(len(text), i+reach)
	for p < stop { // more marks, and closing characters
		r, n := utf8.DecodeRuneInString(text[p:])
		if r != '.' && r != '!' && r != '?' && r != '…' && !sentenceWide(r) && !closes(r) {
			break
		}
		p += n
	}
	spaces := p
	for p < stop {
		r, n := utf8.DecodeRuneInString(text[p:])
		if !unicode.IsSpace(r) {
			break
		}
		p += n
		if r == '\n' {
			break // further white space belongs to the next line
		}
	}
	if sentenceWide(mark) {
		return p
	}
	if p == spaces && p < len(text) {
		return 0
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[p:stop], " \t\r\n"))
	if p < stop && unicode.IsLower(next) || mark == '.' && spaces == i+1 && abbreviated(text, i) {
		return 0
	}
	return p
}

// abbreviated reports whether the point at i belongs to an abbreviation.
func abbreviated(text string, i int) bool {
	low := max(0, i-16)
	start := i
	for start > low {
		r, n := utf8.DecodeLastRuneInString(text[:start])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' {
			break
		}
		start -= n
	}
	word := text[start:i]
	if word == "" {
		return false
	}
	first, n := utf8.DecodeRuneInString(word)
	if n == len(word) && unicode.IsUpper(first) && first != 'I' {
		return true
	}
	if strings.Trim(word, "0123456789.") == "" { // a number in a list, but not at the end of a sentence
		return len(word) <= 3 && strings.TrimSpace(text[lineStart(text, start):start]) == ""
	}
	return abbreviations[strings.ToLower(word)]
}

// lineStart returns the start of the line that contains i, if it is within reach.
func lineStart(text string, i int) int {
	low := max(0, i-reach)
	if j := strings.LastIndexByte(text[low:i], '\n'); j >= 0 {
		return low + j + 1
	}
	if low == 0 {
		return 0
	}
	return i - 1 // inside a line
}
