package plugin

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// This file reads literal HCL values: texts, bools, lists and maps of texts. It evaluates nothing,
// so that the requirements of a file, and a lock, can be read quickly and without the rest of the
// file.
//
// It does not know what the values mean.

// literalItem is an entry of a map.
type literalItem struct {
	Name  string
	Range hcl.Range // of the name
	Value hcl.Expression
}

// literalText reads a text.
func literalText(e hcl.Expression) (string, hcl.Diagnostics) {
	if t, ok := e.(*hclsyntax.TemplateExpr); ok && t.IsStringLiteral() {
		v, diags := t.Value(nil)
		return v.AsString(), diags
	}
	return "", wrong(e, "a text in quotes, written out")
}

// literalBool reads true or false.
func literalBool(e hcl.Expression) (bool, hcl.Diagnostics) {
	if l, ok := e.(*hclsyntax.LiteralValueExpr); ok && l.Val.Type() == cty.Bool {
		return l.Val.True(), nil
	}
	return false, wrong(e, "true or false")
}

// literalNumber reads a whole number, at least 0.
func literalNumber(e hcl.Expression) (int, hcl.Diagnostics) {
	if l, ok := e.(*hclsyntax.LiteralValueExpr); ok && l.Val.Type() == cty.Number {
		if n, exact := l.Val.AsBigFloat().Int64(); exact == 0 && n >= 0 && n <= 1<<31-1 {
			return int(n), nil
		}
	}
	return 0, wrong(e, "a whole number")
}

// literalList reads a list of texts, each with its place.
func literalList(e hcl.Expression) (texts []string, places []hcl.Range, diags hcl.Diagnostics) {
	list, ok := e.(*hclsyntax.TupleConsExpr)
	if !ok {
		return nil, nil, wrong(e, "a list of texts, such as [\"a\", \"b\"]")
	}
	for _, part := range list.Exprs {
		text, bad := literalText(part)
		diags = append(diags, bad...)
		texts, places = append(texts, text), append(places, part.Range())
	}
	return texts, places, diags
}

// literalMap reads the entries of an object, in the file's order. It refuses duplicate names.
func literalMap(e hcl.Expression) (items []literalItem, diags hcl.Diagnostics) {
	object, ok := e.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return nil, wrong(e, "values with names, such as { name = \"value\" }")
	}
	seen := map[string]bool{}
	for _, item := range object.Items {
		name := hcl.ExprAsKeyword(item.KeyExpr)
		if name == "" {
			key := item.KeyExpr
			if k, ok := key.(*hclsyntax.ObjectConsKeyExpr); ok {
				key = k.Wrapped
			}
			var bad hcl.Diagnostics
			if name, bad = literalText(key); bad.HasErrors() {
				diags = append(diags, bad...)
				continue
			}
		}
		at := item.KeyExpr.Range()
		if seen[name] {
			diags = append(diags, literalError(at, "Duplicate name", "%s stands here twice. Remove one of them.", name)...)
			continue
		}
		seen[name] = true
		items = append(items, literalItem{name, at, item.ValueExpr})
	}
	return items, diags
}

// literalTexts reads an object whose values are texts.
func literalTexts(e hcl.Expression) (map[string]string, hcl.Diagnostics) {
	items, diags := literalMap(e)
	all := map[string]string{}
	for _, item := range items {
		text, bad := literalText(item.Value)
		diags = append(diags, bad...)
		all[item.Name] = text
	}
	return all, diags
}

// literalError returns a diagnostic at a range.
func literalError(at hcl.Range, summary, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &at}}
}

func wrong(e hcl.Expression, what string) hcl.Diagnostics {
	return literalError(e.Range(), "Unsuitable value", "Write %s: this is read before anything else of the file, so that it names no variable and calls no function.", what)
}
