package normalizer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// all are the matches of a pattern in a text.
func all(p *Pattern, s string) (found []string) {
	for at := 0; ; {
		start, end := p.Next(s, at)
		if start < 0 {
			return found
		}
		found = append(found, s[start:end])
		at = end
	}
}

// TestScanners compares the scanners with the expressions that they stand for.
func TestScanners(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	bits := strings.Split("a|B|é|漢|\u0301|1|23|²|Ⅷ| |  |   |\t|\n|\r\n|\u00a0|\u3000|.|,|!?|'|'s|'S|'t|'RE|'ve|'ll|'Ll|'d|'m|'x|’s|'ſ|_|🙂|\u200b|\x00", "|")
	for expression, scan := range known {
		expr, blank, err := translate(expression)
		if err != nil {
			t.Fatal(err)
		}
		slow, fast := &Pattern{expr: expr, blank: blank}, &Pattern{scan: scan}
		for range 5000 {
			var b strings.Builder
			for range 1 + rng.IntN(9) {
				b.WriteString(bits[rng.IntN(len(bits))])
			}
			text := b.String()
			if got, want := fmt.Sprintf("%q", all(fast, text)), fmt.Sprintf("%q", all(slow, text)); got != want {
				t.Fatalf("%s: %q: %s, want %s", expression, text, got, want)
			}
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`{"String": "ab"}`, "ababxab", `["ab" "ab" "ab"]`},
		{`{"String": "."}`, "a.b", `["."]`},
		{`{"Regex": "\\d+"}`, "12 ٣٤ ²", `["12" "٣٤"]`},
		{`{"Regex": "[^\\s\\d]+"}`, "a1\u00a0b", `["a" "b"]`},
		{`{"Regex": "\\D"}`, "1a", `["a"]`},
		{`{"Regex": "[\\S]+"}`, "a\u3000b", `["a" "b"]`},
		{`{"Regex": "\\w+"}`, "½a_ⓐ-", `["½a_ⓐ"]`},
		{`{"Regex": "\\W"}`, "a-b", `["-"]`},
		{`{"Regex": "x|\\s+(?!\\S)|\\s+"}`, "  x   a ", `[" " " " "x" "  " " " " "]`},
	} {
		p, err := NewPattern([]byte(c.pattern))
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
		lost                    bool
	}{
		{" {2,}", "a  b   c", " ", "a b c", false},
		{"a+", "aab", "", "b", true},
		{"b", "ab", "", "a", false},
		{"x", "ab", "y", "ab", false},
	} {
		p, err := CompilePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, lost := p.Replace(c.text, c.by); got != c.want || lost != c.lost {
			t.Errorf("%s: %q, %t", c.pattern, got, lost)
		}
	}
}
