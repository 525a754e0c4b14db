package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/racflow/racflow/engine/internal/file/rule"
)

// Inspected is an item that a person inspects.
type Inspected struct {
	*rule.Env
	Unknown map[string]string // why a name has no value, by name
}

// Lacks records why names have no value.
func (i *Inspected) Lacks(why string, names ...string) {
	for _, name := range names {
		i.Unknown[name] = why
	}
}

// Check rejects a rule that reads a name without a value.
func (i *Inspected) Check(r *rule.Rule) error {
	for _, name := range rule.Names(rule.Inspect) {
		if why := i.Unknown[name]; why != "" && r.Reads(name) {
			return fmt.Errorf("%s is not known: %s", name, why)
		}
	}
	return nil
}

// NeedsItem reports whether an expression may read names of an item.
func NeedsItem(expression string) bool {
	return slices.ContainsFunc(word.FindAllString(expression, -1), func(w string) bool {
		return w != "var" && slices.Contains(rule.Names(rule.Inspect), w)
	})
}

var word = regexp.MustCompile(`[a-z_]+`)

// Inspect evaluates an expression in the language of rules, which sees the same names as flag. It
// returns the value in the form of Evaluate.
func (f *File) Inspect(ctx context.Context, expression string, item *Inspected) (value string, diags hcl.Diagnostics, err error) {
	r, diags := f.CompileRule(ctx, rule.Inspect, expression)
	if diags.HasErrors() {
		return "", diags, nil
	}
	if err := item.Check(r); err != nil {
		return "", nil, err
	}
	v, err := r.Value(ctx, item.Env)
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(hclwrite.Format(hclwrite.TokensForValue(v).Bytes()))), nil, nil
}

// Locals returns the names of the file's locals, sorted.
func (f *File) Locals() []string { return keys(f.loader.locals) }
