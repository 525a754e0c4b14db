package pattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

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

// New reads a "pattern" of tokenizer.json, which is {"String": ...} or {"Regex": ...}.
func New(raw json.RawMessage) (*Pattern, error) {
	var f struct{ String, Regex *string }
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case f.Regex != nil && f.String == nil:
		return Compile(*f.Regex)
	case f.String != nil && f.Regex == nil && *f.String != "":
		return &Pattern{text: *f.String, Local: !strings.Contains(*f.String, " ") || strings.Trim(*f.String, " ") == ""}, nil
	}
	return nil, errors.New("pattern: neither a string nor a regular expression")
}

// Compile reads a regular expression.
func Compile(expression string) (*Pattern, error) {
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
