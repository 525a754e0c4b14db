package bounded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// The limits. Work is counted in bytes, so that the result does not depend on the machine. MaxTime
// limits what cannot be counted.
const (
	maxWork        = 16 << 20 // bytes of all values of a file
	MaxTime        = time.Minute
	MaxDiagnostics = 100
	MaxDetail      = 2000 // bytes of a diagnostic's detail
	Overhead       = 100  // bytes of a value in addition to its text
)

var errSlow = fmt.Errorf("it takes longer than %v", MaxTime)

// WithTimeout returns a context that ends after MaxTime.
func WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, MaxTime, errSlow)
}

// Stopped is the value with which methods of an Evaluator panic.
type Stopped struct{ Diagnostic *hcl.Diagnostic }

// Stop recovers a Stopped and calls each with its diagnostic. Callers defer it.
func Stop(each func(*hcl.Diagnostic)) {
	switch r := recover().(type) {
	case nil:
	case Stopped:
		each(r.Diagnostic)
	default:
		panic(r)
	}
}

// Located is something with a place in a file.
type Located interface{ Range() hcl.Range }

// Spend takes n bytes from the budget for work on something. It panics with Stopped if the budget
// is too small or the context has ended.
func (e *Evaluator) Spend(on Located, n int) {
	at := on.Range()
	if e.ctx.Err() != nil {
		d := e.Interrupted()
		d.Subject = &at
		panic(Stopped{d})
	}
	switch {
	case n == math.MaxInt:
		panic(Stopped{&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Number out of range", Subject: &at,
			Detail: fmt.Sprintf("A number has at most %d binary digits before and after its point. Write a smaller one.", maxDigits),
		}})
	case n > e.left:
		panic(Stopped{&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Expressions too large", Subject: &at,
			Detail: fmt.Sprintf("The expressions of a file make at most %d MiB of texts and lists, and this one exceeds that. "+
				"Build less here, or keep the content in a file that a stage or source reads.", maxWork>>20),
		}})
	}
	e.left -= n
}

// TooMany returns the diagnostic that replaces the diagnostics beyond MaxDiagnostics.
func TooMany() *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Too many errors",
		Detail: fmt.Sprintf("Only the first %d are shown.", MaxDiagnostics),
	}
}

// Interrupted says why the context has ended.
func (e *Evaluator) Interrupted() *hcl.Diagnostic {
	if errors.Is(context.Cause(e.ctx), errSlow) {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Loading takes too long", Detail: fmt.Sprintf("Loading has not ended within %v.", MaxTime)}
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Interrupted", Detail: "Loading was interrupted."}
}

// place is a range that implements Located.
type place hcl.Range

func (p place) Range() hcl.Range { return hcl.Range(p) }

// Top returns the beginning of a file.
func Top(file string) Located {
	return place{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// ShowsMuch reports whether a diagnostic would be printed with long values.
func ShowsMuch(d *hcl.Diagnostic) bool {
	if d.Expression == nil || d.EvalContext == nil {
		return false
	}
	return slices.ContainsFunc(d.Expression.Variables(), func(t hcl.Traversal) bool {
		v, _ := t.TraverseAbs(d.EvalContext)
		return weigh(v, MaxDetail) > MaxDetail
	})
}

// Short cuts a text to at most MaxDetail bytes for display, and ends a cut text with an ellipsis.
func Short(text string) string {
	if len(text) <= MaxDetail {
		return text
	}
	cut := MaxDetail
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// The limits of a source: a pipeline file, a file of variables, or a value from the command line.
// They limit the HCL parser to about a second, since it is recursive, and copies a text again for
// each further line.
const (
	MaxSource = 256 << 10 // bytes
	maxSyntax = 100_000   // tokens
	maxDepth  = 500       // levels of nested expressions
	maxJoined = 128 << 20 // bytes copied to join the lines of a text
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

// check rejects a source that would make the parser work too long or recurse too deeply.
func check(src []byte, name string, lex func([]byte, string, hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)) hcl.Diagnostics {
	if len(src) > MaxSource {
		return tooLarge(Top(name).Range(), "A pipeline file, a file of variables or a value has at most %d KiB. Keep long texts in files of their own and read them with file().", MaxSource>>10)
	}
	tokens, diags := lex(src, name, hcl.InitialPos)
	if len(diags) > MaxDiagnostics {
		return diags // not HCL at all; the parser reports a few errors better, with others beside them
	}
	if len(tokens) > maxSyntax {
		return tooLarge(tokens[maxSyntax].Range, "A pipeline file has at most %d words and signs. Keep long lists in files of their own: a source, or jsondecode(file()).", maxSyntax)
	}
	var n nesting
	literal, joined := 0, 0 // bytes of the current text, and bytes copied to join its lines
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
	return ErrorAt(at, "Source too large", format, args...)
}

// ErrorAt returns an error as the only diagnostic of a range.
func ErrorAt(at hcl.Range, summary, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &at}}
}

// nesting computes an upper bound of the depth of the parser's recursion and of its tree. A bracket
// adds a level, and so does every operator and bracket that follows in the same chain, as in a +
// b[0][1] + c.
type nesting struct {
	depth int
	open  []level
}

type level struct {
	by    hclsyntax.TokenType // the token that opened it
	chain int                 // operators since the last separator
}

func (n *nesting) add(t hclsyntax.TokenType) {
	if len(n.open) == 0 {
		n.open = append(n.open, level{by: hclsyntax.TokenOBrace}) // the file is a block's body
	}
	in := &n.open[len(n.open)-1]
	switch t {
	case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenComment:
	case hclsyntax.TokenNewline, hclsyntax.TokenComma:
		if t == hclsyntax.TokenComma || in.by == hclsyntax.TokenOBrace { // elsewhere an expression continues on the next line
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
		if in.by != hclsyntax.TokenTemplateInterp { // parts of a template are siblings, not nested
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

// Read returns the content of a pipeline file, or of stdin if path is "-". It returns at most
// MaxSource + 1 bytes, so that Parse rejects a longer file. It fails soon after ctx ends.
func Read(ctx context.Context, path string, stdin io.Reader) ([]byte, error) {
	return Interruptible(ctx, func() ([]byte, error) {
		if path == "-" {
			return io.ReadAll(io.LimitReader(stdin, MaxSource+1))
		}
		return ReadRegular(path, MaxSource)
	})
}

// ReadRegular reads at most most + 1 bytes from a regular file. It refuses a pipe or device, which
// may never end.
func ReadRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	return ReadAny(path, most)
}

// ReadAny is like ReadRegular, for any kind of file.
func ReadAny(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
