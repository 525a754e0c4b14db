package normalizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file finds what the patterns of a tokenizer.json match: strings, and regular
// expressions as Oniguruma reads them, in linear time.
//
// An expression is translated for package regexp: classes such as \s become those of
// Unicode. Of lookaheads, which that package lacks, the one that GPT-2's expression and
// its descendants end in is known; the most used of these have scanners of their own.
// Every other expression that Go would read in another way, or not at all, is refused.

// maxExpression is the greatest length of an expression in bytes.
const maxExpression = 4096

// Pattern matches parts of texts. It is read-only and safe for concurrent use.
type Pattern struct {
	text  string // matches itself, if not empty
	scan  func(s string) int
	expr  *regexp.Regexp
	blank int  // the group of expr whose last character is given back before other text; 0: none
	Local bool // true: a single space between ASCII letters is matched alone, or begins a match
}

// NewPattern reads a "pattern" of tokenizer.json, which is {"String": ...} or {"Regex": ...}.
func NewPattern(raw json.RawMessage) (*Pattern, error) {
	var f struct{ String, Regex *string }
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case f.Regex != nil && f.String == nil:
		return CompilePattern(*f.Regex)
	case f.String != nil && f.Regex == nil && *f.String != "":
		return &Pattern{text: *f.String, Local: !strings.Contains(*f.String, " ") || strings.Trim(*f.String, " ") == ""}, nil
	}
	return nil, errors.New("pattern: neither a string nor a regular expression")
}

// CompilePattern reads a regular expression.
func CompilePattern(expression string) (*Pattern, error) {
	if scan, ok := known[expression]; ok {
		return &Pattern{scan: scan, Local: true}, nil
	}
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("the regular expression has %d bytes: %d are possible", len(expression), maxExpression)
	}
	expr, blank, err := translate(expression)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q is not supported: %w", expression, err)
	}
	return &Pattern{expr: expr, blank: blank, Local: spaces[expression]}, nil
}

// spaces are expressions that match white space alone.
var spaces = map[string]bool{" {2,}": true, `\s+`: true, " +": true, `\s{2,}`: true, `[ ]{2,}`: true, `\s`: true}

// Words reports whether the pattern matches everywhere, and a single space between ASCII
// letters begins a match.
func (p *Pattern) Words() bool { return p.scan != nil }

// Next returns the first match in s at or behind byte at; start is negative where there is
// none. A match is not empty.
func (p *Pattern) Next(s string, at int) (start, end int) {
	switch {
	case p.text != "":
		i := strings.Index(s[at:], p.text)
		if i < 0 {
			return -1, -1
		}
		return at + i, at + i + len(p.text)
	case p.scan != nil:
		if at == len(s) {
			return -1, -1
		}
		return at, at + p.scan(s[at:])
	case p.blank == 0:
		if m := p.expr.FindStringIndex(s[at:]); m != nil {
			return at + m[0], at + m[1]
		}
		return -1, -1
	}
	m := p.expr.FindStringSubmatchIndex(s[at:])
	if m == nil {
		return -1, -1
	}
	start, end = at+m[0], at+m[1]
	if m[2*p.blank] >= 0 && end < len(s) {
		if _, n := utf8.DecodeLastRuneInString(s[start:end]); n < end-start {
			end -= n
		}
	}
	return start, end
}

// Replace returns s with each match replaced, and whether a match at its beginning was
// replaced by nothing.
func (p *Pattern) Replace(s, by string) (string, bool) {
	start, end := p.Next(s, 0)
	if start < 0 {
		return s, false
	}
	lost := start == 0 && by == ""
	var b strings.Builder
	at := 0
	for ; start >= 0; start, end = p.Next(s, at) {
		b.WriteString(s[at:start])
		b.WriteString(by)
		at = end
	}
	b.WriteString(s[at:])
	return b.String(), lost
}

// GPT2 is the expression of GPT-2 (Radford et al. 2019), RoBERTa and ModernBERT.
const GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+` + lookahead

// known are expressions with a scanner, which returns the length of the match at the
// beginning of a text: they match everywhere.
var known = map[string]func(string) int{
	GPT2: nextGPT2,
	`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+` + lookahead:                                             nextGPT2,
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
	case IsSpace(r):
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

func nextGPT2(s string) int {
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

const (
	space    = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	notSpace = `\x00-\x08\x0e-\x1f!-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}`
	word     = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}Ⓐ-ⓩ\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}`
	wordToo  = `²³¹¼-¾` // but in no class
)

// classes are Oniguruma's classes, as the content of Go's.
var classes = map[byte]string{'s': space, 'S': notSpace, 'd': `\p{Nd}`, 'D': `\P{Nd}`, 'w': word}

// lookahead ends the expressions of GPT-2 and its descendants: white space without its
// last character where text follows, and what is left of it.
const lookahead = `|\s+(?!\S)|\s+`

// translate returns an expression in Go's form, and the group in it that matches in place
// of lookahead.
func translate(expression string) (*regexp.Regexp, int, error) {
	rest, blank := strings.CutSuffix(expression, lookahead)
	text, err := rewrite(rest)
	if err != nil {
		return nil, 0, err
	}
	if blank {
		text += `|(?P<blank_at_the_end>[` + space + `]+)`
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	if err := check(tree); err != nil {
		return nil, 0, err
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil, 0, err
	}
	if expr.MatchString("") {
		return nil, 0, errors.New("it matches the empty string")
	}
	if !blank {
		return expr, 0, nil
	}
	return expr, expr.SubexpIndex("blank_at_the_end"), nil
}

// check refuses what depends on the text around a match, which Oniguruma reads in other
// ways.
func check(tree *syntax.Regexp) error {
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return fmt.Errorf("it has the anchor %s", tree)
	}
	for _, sub := range tree.Sub {
		if err := check(sub); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces Oniguruma's classes, and refuses what Go would read in another way.
func rewrite(expression string) (string, error) {
	var b strings.Builder
	inside := false // a class
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case c == '\\' && i+1 < len(expression):
			i++
			class, ok := classes[expression[i]]
			switch {
			case !ok && inside && expression[i] == 'W':
				return "", errors.New(`it has \W in a class`)
			case !ok && expression[i] == 'W':
				b.WriteString("[^" + word + wordToo + "]")
			case !ok:
				b.WriteString(expression[i-1 : i+1])
			case inside:
				b.WriteString(class)
			case expression[i] == 'w':
				b.WriteString("[" + word + wordToo + "]")
			default:
				b.WriteString("[" + class + "]")
			}
			continue
		case inside && (c == '[' || strings.HasPrefix(expression[i:], "&&")):
			return "", errors.New("it has a class in a class")
		case !inside && (strings.HasPrefix(expression[i:], "(?m") || strings.HasPrefix(expression[i:], "(?s") || strings.HasPrefix(expression[i:], "(?x")):
			return "", fmt.Errorf("it has %s", expression[i:i+3])
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}
