package bounded

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// The bounds of a source: a pipeline file, a file of variables, or a value from the command
// line. They keep the HCL parser to about a second: it is recursive, and copies a text again
// for each further line.
const (
	MaxSource = 256 << 10 // bytes
	maxSyntax = 100_000   // tokens
	maxDepth  = 500       // levels of nested expressions
	maxJoined = 128 << 20 // bytes copied to join the lines of texts
	maxDigits = 4096      // of a number
)

// Format formats HCL in the canonical style.
func Format(src []byte) []byte { return hclwrite.Format(src) }

// Parse parses a pipeline file or a file of variables, called name in diagnostics. The file
// is never nil.
func Parse(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	diags := check(src, name, hclsyntax.LexConfig)
	f := &hcl.File{Bytes: src, Body: hcl.EmptyBody()}
	if len(diags) == 0 {
		f, diags = hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	}
	if len(diags) > MaxDiagnostics {
		diags = append(diags[:MaxDiagnostics:MaxDiagnostics], TooMany())
	}
	return f, diags
}

// ParseExpression parses a source that is one expression, called name in diagnostics.
func ParseExpression(src []byte, name string) (hclsyntax.Expression, hcl.Diagnostics) {
	if diags := check(src, name, hclsyntax.LexExpression); len(diags) > 0 {
		return nil, diags
	}
	return hclsyntax.ParseExpression(src, name, hcl.InitialPos)
}

// check refuses a source that would take the parser too long or too deep.
func check(src []byte, name string, lex func([]byte, string, hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)) hcl.Diagnostics {
	if len(src) > MaxSource {
		return tooLarge(Top(name).Range(), "A pipeline file, a file of variables or a value has at most %d KiB. Keep long texts in files of their own and read them with file().", MaxSource>>10)
	}
	tokens, diags := lex(src, name, hcl.InitialPos)
	if len(diags) > MaxDiagnostics {
		return diags // not a text at all; a few errors are left to the parser, which finds others beside them
	}
	if len(tokens) > maxSyntax {
		return tooLarge(tokens[maxSyntax].Range, "A pipeline file has at most %d words and signs. Keep long lists in files of their own: a source, or jsondecode(file()).", maxSyntax)
	}
	var n nesting
	literal, joined := 0, 0 // bytes of the text so far, and copied to join them
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			literal += len(t.Bytes)
			if joined += literal; joined > maxJoined {
				return tooLarge(t.Range, "This text has too many lines. Keep it in a file of its own and read it with file().")
			}
			continue
		case hclsyntax.TokenNumberLit:
			if len(t.Bytes) > maxDigits {
				return tooLarge(t.Range, "A number has at most %d digits.", maxDigits)
			}
		}
		literal, joined = 0, 0
		if n.add(t.Type); n.depth > maxDepth {
			return tooLarge(t.Range, "More than %d brackets, operators or parts of a template stand in each other here. Give parts of the expression names of their own in locals.", maxDepth)
		}
	}
	return nil
}

func tooLarge(at hcl.Range, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Source too large", Detail: fmt.Sprintf(format, args...), Subject: &at}}
}

// nesting bounds from above how deep the parser recurses and how deep the tree
// becomes that it makes: a bracket adds a level, and so does every operator and
// bracket that follows in the same chain, as in a + b[0][1] + c.
type nesting struct {
	depth int
	open  []level
}

type level struct {
	by    hclsyntax.TokenType // that opened it
	chain int                 // operators since the last separator
}

func (n *nesting) add(t hclsyntax.TokenType) {
	if len(n.open) == 0 {
		n.open = append(n.open, level{by: hclsyntax.TokenOBrace}) // the file is the body of a block
	}
	in := &n.open[len(n.open)-1]
	switch t {
	case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenComment:
	case hclsyntax.TokenNewline, hclsyntax.TokenComma:
		if t == hclsyntax.TokenComma || in.by == hclsyntax.TokenOBrace { // elsewhere an expression goes on over lines
			n.depth -= in.chain
			in.chain = 0
		}
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
		if len(n.open) == 1 {
			return
		}
		n.depth -= in.chain + 1
		n.open = n.open[:len(n.open)-1]
		if in.by != hclsyntax.TokenTemplateInterp { // those of a template stand beside each other
			n.depth++
			n.open[len(n.open)-1].chain++
		}
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		n.depth++
		n.open = append(n.open, level{by: t})
	default:
		n.depth++
		in.chain++
	}
}
