package pipeline

import (
	"context"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/engine/rule"
)

// Evaluate returns the value of an HCL expression that names variables, locals and
// functions of a file that was loaded, as HCL writes it. What is made from a secret
// reads "(secret)". Diagnostics call the expression "expression".
func (f *File) Evaluate(ctx context.Context, expression string) (value string, diags hcl.Diagnostics) {
	l := f.further(ctx, expression)
	defer bounded.Stop(func(d *hcl.Diagnostic) { diags = append(l.sorted(), d) })
	e, diags := bounded.ParseExpression(l.src, further)
	if diags.HasErrors() {
		return "", diags
	}
	v := l.eval(e)
	if l.diags.HasErrors() {
		return "", l.sorted()
	}
	if v.ContainsMarked() {
		v, _ = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if v.IsMarked() {
				return cty.StringVal(redact.Placeholder), nil
			}
			return v, nil
		})
	}
	if !v.IsWhollyKnown() {
		return "(unknown)", nil
	}
	return strings.TrimSpace(string(hclwrite.Format(hclwrite.TokensForValue(v).Bytes()))), nil
}

// CompileRule compiles a rule that is not in the file, with the file's variables and
// as if everything that it may read stood above it. Diagnostics call it "expression".
func (f *File) CompileRule(ctx context.Context, kind rule.Kind, text string) (r *rule.Rule, diags hcl.Diagnostics) {
	l := f.further(ctx, text)
	defer bounded.Stop(func(d *hcl.Diagnostic) { diags = append(l.sorted(), d) })
	whole := hcl.Range{Filename: further, Start: hcl.InitialPos, End: hcl.Pos{Line: 1, Column: len(text) + 1, Byte: len(text)}}
	return rule.Compile(kind, rule.Scope{Candidates: true, Voters: true, Vars: l.seen()},
		rule.Source{Text: text, Range: func(int, int) hcl.Range { return whole }})
}

// further is what diagnostics call an expression that is not in the file.
const further = "expression"

// further makes ready to work on a text with the values of the file.
func (f *File) further(ctx context.Context, text string) *loader {
	l := newLoader(ctx, f.Path, f.loader.Options)
	l.vars, l.locals, l.src = f.loader.vars, f.loader.locals, []byte(text)
	f.Sources[further] = &hcl.File{Bytes: l.src}
	return l
}
