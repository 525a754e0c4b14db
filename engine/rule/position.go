package rule

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/apparentlymart/go-textseg/v15/textseg"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Source is the text of a rule and where it stands in its file.
type Source struct {
	Text string
	// Range returns the place in the HCL file of the runes from..to of Text.
	Range func(from, to int) hcl.Range
}

// NewSource reads a rule from the HCL expression it is written in. file is the
// whole HCL file; ctx evaluates an expression that is not a plain string.
//
// Positions are exact for quoted strings, escapes included, and for heredocs,
// indented ones too. For any other expression, such as local.rule, every
// position is the whole expression.
func NewSource(file []byte, e hcl.Expression, ctx *hcl.EvalContext) (Source, hcl.Diagnostics) {
	if diags := refuseTemplate(e); diags.HasErrors() {
		return Source{}, diags
	}
	fail := func(detail string) (Source, hcl.Diagnostics) {
		return Source{}, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Invalid rule", Detail: detail, Subject: e.Range().Ptr(),
		}}
	}
	v, diags := e.Value(ctx)
	switch {
	case diags.HasErrors():
		return Source{}, diags
	case v.IsMarked():
		return fail("A rule cannot be made from a secret.")
	case v.IsNull() || !v.IsKnown() || v.Type() != cty.String:
		return fail(`A rule is a text, such as "margin < 0.1".`)
	}
	return Source{v.AsString(), ranges(file, e, v.AsString())}, nil
}

// refuseTemplate rejects ${ and %{ in a rule: the rule is compiled once, and a
// value pasted into its text could change its meaning.
func refuseTemplate(e hcl.Expression) hcl.Diagnostics {
	var inserted hcl.Expression
	switch t := literal(e).(type) {
	case *hclsyntax.TemplateWrapExpr:
		inserted = t
	case *hclsyntax.TemplateExpr:
		for _, part := range t.Parts {
			if _, ok := part.(*hclsyntax.LiteralValueExpr); !ok {
				inserted = part
				break
			}
		}
	}
	if inserted == nil {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagError,
		Summary:  "Template sequence in a rule",
		Detail: "A rule is not a template: ${ and %{ have no meaning in it. " +
			"Write the name of a variable plainly, such as var.x; the rule sees its value.",
		Subject: inserted.Range().Ptr(),
		Context: e.Range().Ptr(),
	}}
}

// literal removes parentheses.
func literal(e hcl.Expression) hcl.Expression {
	for {
		p, ok := e.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return e
		}
		e = p.Expression
	}
}

func ranges(file []byte, e hcl.Expression, text string) func(from, to int) hcl.Range {
	whole := e.Range()
	offsets, ok := offsets(file, literal(e).Range(), text)
	if !ok {
		return func(int, int) hcl.Range { return whole }
	}
	places := sync.OnceValue(func() []hcl.Pos { return positions(file, whole.Start, offsets) })
	last := len(offsets) - 1
	return func(from, to int) hcl.Range {
		from = min(max(from, 0), last)
		to = min(max(to, from+1), last)
		return hcl.Range{Filename: whole.Filename, Start: places()[from], End: places()[to]}
	}
}

// positions walks from a known place to each of some byte offsets, which
// ascend, counting columns in grapheme clusters, as HCL does.
func positions(file []byte, at hcl.Pos, offsets []int) []hcl.Pos {
	all := make([]hcl.Pos, 0, len(offsets))
	after := at // the cluster that begins at
	for _, offset := range offsets {
		for after.Byte <= offset && after.Byte < len(file) {
			at = after
			n, cluster, _ := textseg.ScanGraphemeClusters(file[at.Byte:], true)
			after.Byte += n
			if after.Column++; cluster[0] == '\n' || cluster[0] == '\r' {
				after.Line, after.Column = after.Line+1, 1
			}
		}
		p := at
		if offset > at.Byte {
			p.Byte, p.Column = offset, at.Column+1
		}
		if offset >= after.Byte {
			p = after
		}
		all = append(all, p)
	}
	return all
}

// offsets returns for each rune of text, and for its end, the offset in the
// file of what it was written as. It reports false where text does not come
// from a literal that it can read back.
func offsets(file []byte, r hcl.Range, text string) ([]int, bool) {
	if !r.CanSliceBytes(file) {
		return nil, false
	}
	// The closing marker of a heredoc is only seen before a line break.
	tokens, _ := hclsyntax.LexExpression(append(r.SliceBytes(file)[:r.End.Byte-r.Start.Byte:r.End.Byte-r.Start.Byte], '\n'), r.Filename, r.Start)
	var u unescaper
	heredoc, end := false, r.End.Byte
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			heredoc = true
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			u.read(t.Bytes, t.Range.Start.Byte, !heredoc)
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			end = t.Range.Start.Byte
		}
	}
	if heredoc {
		u.outdent(text)
	}
	return append(u.offsets, end), string(u.runes) == text
}

// unescaper reads a string literal as HCL does and keeps where each rune
// stood.
type unescaper struct {
	runes   []rune
	offsets []int
}

var escapes = map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', '"': '"', '\\': '\\'}

func (u *unescaper) read(b []byte, offset int, quoted bool) {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case quoted && r == '\\' && i+1 < len(b):
			r, n = unescape(b[i:])
		case (r == '$' || r == '%') && i+2 < len(b) && rune(b[i+1]) == r && b[i+2] == '{':
			n = 2 // $${ is written for ${
		}
		u.runes = append(u.runes, r)
		u.offsets = append(u.offsets, offset+i)
		i += n
	}
}

func unescape(b []byte) (r rune, n int) {
	digits := map[byte]int{'u': 4, 'U': 8}[b[1]]
	if digits == 0 || len(b) < 2+digits {
		return escapes[b[1]], 2
	}
	code, err := strconv.ParseUint(string(b[2:2+digits]), 16, 32)
	if err != nil {
		return utf8.RuneError, 2
	}
	return rune(code), 2 + digits
}

// outdent removes what HCL removed from the lines of an indented heredoc: the
// start of each line that text lacks.
func (u *unescaper) outdent(text string) {
	want := strings.Split(text, "\n")
	var runes []rune
	var offsets []int
	for line, start := 0, 0; start < len(u.runes) && line < len(want); line++ {
		end := start
		for end < len(u.runes) && u.runes[end] != '\n' {
			end++
		}
		cut := start + max(0, end-start-utf8.RuneCountInString(want[line]))
		next := min(end+1, len(u.runes))
		runes = append(runes, u.runes[cut:next]...)
		offsets = append(offsets, u.offsets[cut:next]...)
		start = next
	}
	u.runes, u.offsets = runes, offsets
}
