package pipeline

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/racflow/racflow/engine/internal/file/rule"
)

// NeedsItem reports whether an expression may read names of an item.
func NeedsItem(expression string) bool {
	return slices.ContainsFunc(word.FindAllString(expression, -1), func(w string) bool {
		return w != "var" && slices.Contains(rule.Names(rule.Inspect), w)
	})
}

var word = regexp.MustCompile(`[a-z_]+`)

// Inspect evaluates an expression in the language of rules, which sees the same names as flag. It
// returns the value in the form of Evaluate.
func (f *File) Inspect(ctx context.Context, expression string, item *rule.Env) (value string, diags hcl.Diagnostics, err error) {
	r, diags := f.CompileRule(ctx, rule.Inspect, expression)
	if diags.HasErrors() {
		return "", diags, nil
	}
	v, err := r.Value(ctx, item)
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(hclwrite.Format(hclwrite.TokensForValue(v).Bytes()))), nil, nil
}

// Locals returns the names of the file's locals, sorted.
func (f *File) Locals() []string { return keys(f.loader.locals) }
