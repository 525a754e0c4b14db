package normalizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// This file finds the matches of patterns in a tokenizer.json: strings, and regular expressions, which the tokenizers
// library reads with Oniguruma.
//
// Package regexp2 reads the expressions of known models like Oniguruma, including lookaheads such as GPT-2's.
// Constructs that the two read differently are refused. If an expression takes too long, it has no further matches,
// since it may be an attack.

const (
	maxExpression = 4096 // bytes
	maxMatching   = 10 * time.Second
)

// gpt2 is the expression of GPT-2 (Radford et al. 2019), RoBERTa and ModernBERT.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// pattern matches parts of texts. It is read-only and safe for concurrent use.
type pattern struct {
	text string // a literal to match, if not empty
	expr *regexp2.Regexp
}

// newPattern reads a "pattern" of tokenizer.json: {"String": ...} or {"Regex": ...}.
func newPattern(raw json.RawMessage) (*pattern, error) {
	var f struct{ String, Regex *string }
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case f.Regex != nil && f.String == nil:
		return compilePattern(*f.Regex)
	case f.String != nil && f.Regex == nil && *f.String != "":
		return &pattern{text: *f.String}, nil
	}
	return nil, errors.New("pattern: neither a string nor a regular expression")
}

// compilePattern reads a regular expression.
func compilePattern(expression string) (*pattern, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("the regular expression has %d bytes: %d are possible", len(expression), maxExpression)
	}
	expr, err := compile(expression)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q is not supported: %w", expression, err)
	}
	return &pattern{expr: expr}, nil
}

func compile(expression string) (*regexp2.Regexp, error) {
	if err := check(expression); err != nil {
		return nil, err
	}
	expr, err := regexp2.Compile(expression)
	if err != nil {
		return nil, err
	}
	expr.MatchTimeout = maxMatching
	if empty, err := expr.MatchString(""); empty || err != nil {
		return nil, cmp.Or(err, errors.New("it matches the empty string"))
	}
	return expr, nil
}

// check refuses constructs that Oniguruma reads differently from regexp2.
func check(expression string) error {
	inside := false // inside a character class
	for i := 0; i < len(expression); i++ {
		rest := expression[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			if strings.IndexByte("wWbBAzZGKhHRX", rest[1]) >= 0 {
				return fmt.Errorf("it has %s", rest[:2])
			}
			i++
		case inside && (rest[0] == '[' || strings.HasPrefix(rest, "&&")):
			return errors.New("it has a class in a class")
		case inside:
			inside = rest[0] != ']'
		case rest[0] == '^' || rest[0] == '$':
			return fmt.Errorf("it has the anchor %s", rest[:1])
		case rest[0] == '[':
			inside = true
			if strings.HasPrefix(rest, "[^") {
				i++
			}
		case strings.HasPrefix(rest, "(?m") || strings.HasPrefix(rest, "(?s") || strings.HasPrefix(rest, "(?x"):
			return fmt.Errorf("it has %s", rest[:3])
		}
	}
	return nil
}

// span is a part of a text that a pattern matches, or a part between matches.
type span struct {
	start, end int
	match      bool
}

// spans returns the parts of a text that match, and the parts between them.
func (p *pattern) spans(text string) (all []span) {
	at := 0
	add := func(start, end int) {
		if at < start {
			all = append(all, span{at, start, false})
		}
		if start < end {
			all = append(all, span{start, end, true})
		}
		at = end
	}
	if p.expr != nil {
		found, _ := p.expr.FindAllStringIndex(text, -1) // the only possible error is the timeout
		for _, m := range found {
			add(m[0], m[1])
		}
	} else {
		for i := strings.Index(text, p.text); i >= 0; i = strings.Index(text[at:], p.text) {
			add(at+i, at+i+len(p.text))
		}
	}
	add(len(text), len(text))
	return all
}

// Replace returns a text with each match replaced.
func (p *pattern) Replace(text, by string) string {
	var b strings.Builder
	for _, s := range p.spans(text) {
		if s.match {
			b.WriteString(by)
		} else {
			b.WriteString(text[s.start:s.end])
		}
	}
	return b.String()
}
