package support

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAt(t *testing.T) {
	text := "before\n\n# A\n\none\n\n## B\n\n### C\n\ntwo\n\n## D\n\nthree\n\n# E\n"
	sections := ReadSections(text)
	for at, want := range map[string]string{
		"before": "A", "# A": "A", "one": "A", "## B": "A > B", "two": "A > B > C", "three": "A > D", "# E": "E",
	} {
		if got := strings.Join(sections.At(strings.Index(text, at)), " > "); got != want {
			t.Errorf("%q is below %q, want %q", at, got, want)
		}
	}
	if got := ReadSections("").At(0); got != nil {
		t.Errorf("an empty text has headings %q", got)
	}
}

// TestRead checks the positions and levels of headings, and the kinds of blocks.
func TestRead(t *testing.T) {
	kinds := map[BlockKind]string{Prose: "prose", LineBlock: "lines", Matter: "matter"}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a quoted line above a rule":  {"> a\n---\n# B\n", []string{"prose: > a", "prose: ---", "1: B"}},
		"a rule above":                {"***\nA\n---\n", []string{"prose: ***", "2: A"}},
		"inside a quote":              {"> # no\n", []string{"prose: > # no"}},
		"inside a list":               {"- a\n\n  # no\n\n  no\n  ==\n# B\n", []string{"lines: - a", "1: B"}},
		"below a list":                {"- a\n\n### B\n", []string{"lines: - a", "3: B"}},
		"another bullet":              {"- a\n* b\n", []string{"lines: - a", "lines: * b"}},
		"a number in a paragraph":     {"in\n1986. It was\n", []string{"prose: in"}},
		"definitions above a rule":    {"[a]: /b\n---\n", []string{"prose: [a]: /b", "prose: ---"}},
		"a table ends a paragraph":    {"text\n| a | b |\n|---|---|\n| c |\n\nx\n", []string{"prose: text", "lines: | a | b |", "prose: x"}},
		"a table above a rule":        {"| a | b |\n|---|---|\n---\nx\n", []string{"lines: | a | b |", "prose: ---", "prose: x"}},
		"HTML up to an empty line":    {"<div>\n# no\n\n# A\n", []string{"lines: <div>", "1: A"}},
		"a comment":                   {"<!--\n\n# no\n-->\n# A\n", []string{"lines: <!--", "1: A"}},
		"a mark that is not closed":   {"~~~\n# no\n```\n", []string{"lines: ~~~"}},
		"indented code":               {"a\n\n\t# no\n\n    b\nc\n", []string{"prose: a", "lines: \t# no", "prose: c"}},
		"seven marks, and no space":   {"####### no\n#no\n", []string{"prose: ####### no"}},
		"closed":                      {"## A b # ##  \r\n", []string{"2: A b #"}},
		"front matter":                {"\uFEFF+++\n# no\n+++\n# A\n", []string{"matter: \uFEFF+++", "1: A"}},
		"a byte order mark":           {"\uFEFF# A\n", []string{"1: A"}},
		"front matter without an end": {"---\n# A\n", []string{"prose: ---", "1: A"}},
		"a long title":                {"# " + strings.Repeat("é", 150) + "\n", []string{"1: " + strings.Repeat("é", 100)}},
	} {
		var got []string
		end := 0
		for _, b := range blocks(test.text) {
			line, _, _ := strings.Cut(test.text[b.Start:b.End], "\n")
			if line = kinds[b.Kind] + ": " + line; b.Kind == Heading {
				line = fmt.Sprint(b.level, ": ", b.title)
			}
			if got = append(got, line); b.Start != end {
				t.Errorf("%s: a block begins at %d, the one before it ended at %d", name, b.Start, end)
			}
			end = b.End
		}
		if !slices.Equal(got, test.want) || end != len(test.text) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, test.want)
		}
	}
}
