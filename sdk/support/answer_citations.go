package support

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// bracket matches a citation: [1], [2, 5], [1-3].
var (
	bracket = Pattern(`[\[【][ \t]*(?:[Pp]assages?[ \t]+)?[0-9]+(?:[ \t]*[-–,;][ \t]*[0-9]+)*[ \t]*[\]】]`)
	number  = Pattern(`[0-9]+`)
)

// Citations returns the numbers of the passages that a text cites, each once, in the order of their
// first occurrence. Passages are numbered from 1 to n. stray is the first cited number without a
// passage, as it is written, or empty.
//
// A citation is a number in brackets. It may also be several numbers, separated by commas or
// semicolons, or the first and the last with a hyphen: [1], [2, 5], [1][3], [1-3]. Models also write
// [passage 1] and 【1】, whatever the prompt says. These are no citations:
//
//   - brackets in code, between backticks or in a fence as in Markdown;
//   - the text of a link, [1](guide.md), and a bracket directly behind another bracket that is no citation:
//     [text][1], a[0][1];
//   - a bracket directly behind a letter, a digit, an underscore or a closing parenthesis, with a number
//     without a passage: buf[512] is an index. With numbers of passages it is a citation, for models do
//     write "port 80[1]".
func Citations(text string, n int) (cited []int, stray string) {
	code := withoutCode(text)
	left := uncited{}
	last := -1 // end of the previous citation
	for at := 0; ; {
		found := bracket().FindStringIndex(code[at:])
		if found == nil {
			return cited, stray
		}
		start, end := at+found[0], at+found[1]
		at = end
		numbers, unknown := numbersIn(code[start:end], n)
		before, _ := utf8.DecodeLastRuneInString(code[:start])
		if strings.HasPrefix(code[end:], "(") || before == ']' && last != start || unknown != "" && isOperand(before) {
			continue
		}
		last = end
		if stray == "" {
			stray = unknown
		}
		for _, r := range numbers {
			for i := left.from(r.first); i <= r.last; i = left.from(i) {
				left[i] = i + 1
				cited = append(cited, i)
			}
		}
	}
}

// uncited maps each cited number to a later number; from follows these steps to the first number that
// is not cited. So the time stays linear if a text cites the same thousands of passages repeatedly.
type uncited map[int]int

// from returns the first number from i on that is not cited.
func (u uncited) from(i int) int {
	first := i
	for u[first] != 0 {
		first = u[first]
	}
	for u[i] != 0 { // path compression
		i, u[i] = u[i], first
	}
	return first
}

// span is a range of numbers, from the first to the last.
type span struct{ first, last int }

// isOperand reports whether a bracket directly behind a character may be an index.
func isOperand(r rune) bool {
	return r == '_' || r == ')' || r != utf8.RuneError && isWord(r)
}

// numbersIn returns the numbers in a bracket that belong to n passages, and the first number that
// does not.
func numbersIn(bracket string, n int) (numbers []span, unknown string) {
	before, end := 0, 0 // the previous number, 0 for none, and its end
	for _, at := range number().FindAllStringIndex(bracket, -1) {
		digits := bracket[at[0]:at[1]]
		i, err := strconv.Atoi(digits)
		if err != nil || i < 1 || i > n {
			if unknown == "" {
				unknown = digits[:min(len(digits), maxDigits)]
			}
			i = 0
		}
		switch {
		case i == 0:
		case before > 0 && before < i && strings.ContainsAny(bracket[end:at[0]], "-–"):
			numbers = append(numbers, span{before + 1, i})
		default:
			numbers = append(numbers, span{i, i})
		}
		before, end = i, at[1]
	}
	return numbers, unknown
}

// maxDigits bounds the digits of a stray number that are shown.
const maxDigits = 12

// code finds fenced blocks and spans of code. Indented blocks count as text, since lists are
// indented, too.
var code = parser.NewParser(
	parser.WithBlockParsers(util.Prioritized(parser.NewFencedCodeBlockParser(), 0), util.Prioritized(parser.NewParagraphParser(), 1)),
	parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 0)))

// withoutCode replaces the code in a Markdown text by spaces.
func withoutCode(markdown string) string {
	if !strings.ContainsAny(markdown, "`~") {
		return markdown
	}
	out := []byte(markdown)
	blank := func(s text.Segment) { space(out[s.Start:s.Stop]) }
	_ = ast.Walk(code.Parse(text.NewReader([]byte(markdown))), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block, ok := n.(*ast.FencedCodeBlock); ok && entering {
			for i := range block.Lines().Len() {
				blank(block.Lines().At(i))
			}
		}
		if span, ok := n.(*ast.Text); ok && entering && n.Parent().Kind() == ast.KindCodeSpan {
			blank(span.Segment)
		}
		return ast.WalkContinue, nil // it has no other
	})
	return string(out)
}
