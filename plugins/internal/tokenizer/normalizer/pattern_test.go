package normalizer

import (
	"fmt"
	"testing"
)

// all returns the matches of a pattern in a text.
func all(p *pattern, s string) (found []string) {
	for _, part := range p.spans(s) {
		if part.match {
			found = append(found, s[part.start:part.end])
		}
	}
	return found
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`{"String": "ab"}`, "ababxab", `["ab" "ab" "ab"]`},
		{`{"String": "."}`, "a.b", `["."]`},
		{`{"Regex": "\\d+"}`, "12 ٣٤ ²", `["12" "٣٤"]`},
		{`{"Regex": "[^\\s\\d]+"}`, "a1\u00a0b", `["a" "b"]`},
		{`{"Regex": "\\D"}`, "1a", `["a"]`},
		{`{"Regex": "[\\S]+"}`, "a\u3000b", `["a" "b"]`},
		{`{"Regex": "x|\\s+(?!\\S)|\\s+"}`, "  x   a ", `[" " " " "x" "  " " " " "]`},
	} {
		p, err := newPattern([]byte(c.pattern))
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := fmt.Sprintf("%q", all(p, c.text)); got != c.want {
			t.Errorf("%s: %s, want %s", c.pattern, got, c.want)
		}
	}
}

func TestReplace(t *testing.T) {
	for _, c := range []struct {
		pattern, text, by, want string
	}{
		{" {2,}", "a  b   c", " ", "a b c"},
		{"a+", "aab", "", "b"},
		{"b", "ab", "", "a"},
		{"x", "ab", "y", "ab"},
	} {
		p, err := compilePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Replace(c.text, c.by); got != c.want {
			t.Errorf("%s: %q", c.pattern, got)
		}
	}
}
