package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

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
