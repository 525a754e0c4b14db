package rule

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// TestPositions searches for a word of each rule and expects the range in the file that contains
// it.
func TestPositions(t *testing.T) {
	tests := []struct {
		name, file string // of the form: a = EXPRESSION
		word       string // in the rule's text
		want       string // in the file
	}{
		{"quoted", `a = "margin < marign"`, "marign", "marign"},
		{"escaped quotes", `a = "answer == \"x\" and marign"`, "marign", "marign"},
		{"the quotes themselves", `a = "answer == \"x\""`, `"x"`, `\"x\"`},
		{"wide runes", `a = "item.text == \"é😀\" and marign"`, "marign", "marign"},
		{"a lone dollar", `a = "x matches \"^y$\" and marign"`, "marign", "marign"},
		{"parentheses", `a = (("marign"))`, "marign", "marign"},
		{"heredoc", "a = <<EOT\nany(candidates,\n    .labl == \"x\")\nEOT\n", ".labl", ".labl"},
		{"heredoc keeps backslashes", "a = <<EOT\nx matches \"\\\\d\" and marign\nEOT\n", "marign", "marign"},
		{"indented heredoc", "a = <<-EOT\n    any(candidates,\n      .labl == \"x\" and\n    marign)\n  EOT\n", "marign", "marign"},
		{"its deeper line", "a = <<-EOT\n    any(candidates,\n      .labl == \"x\" and\n    marign)\n  EOT\n", ".labl", ".labl"},
		{"blank lines", "a = <<-EOT\n    x and\n\n    \n    marign\n  EOT\n", "marign", "marign"},
		{"tabs", "a = <<-EOT\n\t\tx and\n\t\t\tmarign\n\tEOT\n", "marign", "marign"},
		{"line ends of Windows", "a = <<-EOT\r\n    x and\r\n    marign\r\n  EOT\r\n", "marign", "marign"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, diags := NewSource([]byte(tt.file), attribute(t, tt.file), nil)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			i := strings.Index(src.Text, tt.word)
			if i < 0 {
				t.Fatalf("no %q in %q", tt.word, src.Text)
			}
			from := len([]rune(src.Text[:i]))
			r := src.Range(from, from+len([]rune(tt.word)))
			if got := string(r.SliceBytes([]byte(tt.file))); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if want := strings.Count(tt.file[:r.Start.Byte], "\n") + 1; r.Start.Line != want {
				t.Errorf("line %d, want %d", r.Start.Line, want)
			}
			line := tt.file[strings.LastIndex(tt.file[:r.Start.Byte], "\n")+1 : r.Start.Byte]
			if want := len([]rune(line)) + 1; r.Start.Column != want {
				t.Errorf("column %d, want %d", r.Start.Column, want)
			}
		})
	}
}

func TestPositionsOfOtherExpressions(t *testing.T) {
	file := `a = "${upper("x")}y"` + "\n" + `b = upper("x")` + "\n"
	f, diags := hclsyntax.ParseConfig([]byte(file), "f.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	attrs, _ := f.Body.JustAttributes()
	src := Source{"x > 1", ranges([]byte(file), attrs["b"].Expr, "x > 1")}
	if got := string(src.Range(2, 3).SliceBytes([]byte(file))); got != `upper("x")` {
		t.Errorf("got %q, want the whole expression", got)
	}
	escaped := `a = "answer == '\u00e9' and marign"`
	src, diags = NewSource([]byte(escaped), attribute(t, escaped), nil)
	if got := string(src.Range(2, 3).SliceBytes([]byte(escaped))); diags.HasErrors() || got != escaped[4:] {
		t.Errorf("got %q, %v, want the whole text with escapes", got, diags)
	}
}

func TestNewSourceRefuses(t *testing.T) {
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{
		"s": cty.StringVal("x").Mark("secret"), "n": cty.NumberIntVal(1), "ok": cty.StringVal("margin < 1"),
	}}
	for file, want := range map[string]string{
		`a = "margin < ${n}"`:             "Write the name of a variable plainly",
		`a = "${ok}"`:                     "Write the name of a variable plainly",
		"a = <<EOT\nmargin < ${n}\nEOT\n": "Write the name of a variable plainly",
		`a = "%{ if true }x%{ endif }"`:   "Write the name of a variable plainly",
		`a = ("margin < ${n}")`:           "Write the name of a variable plainly",
		`a = 5`:                           "A rule is a text",
		`a = null`:                        "A rule is a text",
		`a = s`:                           "cannot be made from a secret",
		`a = missing`:                     "Unknown variable",
	} {
		if _, diags := NewSource([]byte(file), attribute(t, file), ctx); !strings.Contains(diags.Error(), want) {
			t.Errorf("%s: got %v, want %s", file, diags, want)
		}
	}
	if src, diags := NewSource([]byte(`a = ok`), attribute(t, `a = ok`), ctx); diags.HasErrors() || src.Text != "margin < 1" {
		t.Errorf("got %q, %v", src.Text, diags)
	}
}

func attribute(t *testing.T, file string) hcl.Expression {
	t.Helper()
	f, diags := hclsyntax.ParseConfig([]byte(file), "f.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	attrs, _ := f.Body.JustAttributes()
	return attrs["a"].Expr
}
