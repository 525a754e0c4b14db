package suggest

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/sdk"
)

// Stages are those that a file can use.
type Stages interface {
	Uses(sdk.Kind) []string
	Stage(sdk.Kind, string) (sdk.Stage, bool)
}

// File is what stands in a pipeline file.
type File struct {
	Variables            []*Variable // in the order of the file
	Pipelines, Knowledge []string
}

// Variable is a variable of a file.
type Variable struct {
	Name, Doc string
	Path      bool     // its values are paths
	Model     bool     // its values are names of models on this machine, too
	Values    []string // that it may have, as far as the file shows; nil: it does not show any
}

// Variable returns the variable of a name; nil: there is none.
func (f *File) Variable(name string) *Variable {
	i := slices.IndexFunc(f.Variables, func(v *Variable) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return f.Variables[i]
}

// Read reads a file. One that cannot be read is empty.
func Read(path string, stages Stages) *File {
	f := &File{}
	src, err := bounded.ReadAny(path, bounded.MaxSource)
	if err != nil {
		return f
	}
	parsed, _ := bounded.Parse(src, path)
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		return f
	}
	for _, b := range body.Blocks {
		if len(b.Labels) == 0 {
			continue
		}
		switch b.Type {
		case "variable":
			f.Variables = append(f.Variables, variableOf(b))
		case "pipeline":
			f.Pipelines = append(f.Pipelines, b.Labels[0])
		case "knowledge":
			f.Knowledge = append(f.Knowledge, b.Labels[0])
		}
	}
	r := reader{f, stages}
	r.block(body, grammar.Block{Blocks: grammar.Blocks()})
	r.compared(body)
	return f
}

// variableOf reads a variable block.
func variableOf(b *hclsyntax.Block) *Variable {
	v := &Variable{Name: b.Labels[0]}
	if a := b.Body.Attributes["description"]; a != nil {
		v.Doc, _ = text(a.Expr)
	}
	typ := ""
	if a := b.Body.Attributes["type"]; a != nil {
		if t, ok := a.Expr.(*hclsyntax.ScopeTraversalExpr); ok {
			typ = t.Traversal.RootName()
		}
	}
	a := b.Body.Attributes["default"]
	if a != nil {
		if value, diags := a.Expr.Value(nil); !diags.HasErrors() && value.Type() == cty.Bool {
			typ = "bool"
		}
		if value, ok := text(a.Expr); ok && value != "" && typ != "path" {
			v.add(value)
		}
	}
	if v.Path = typ == "path"; typ == "bool" {
		v.add("true", "false")
	}
	return v
}

// text is the value of an expression that is a text and nothing else.
func text(e hclsyntax.Expression) (string, bool) {
	value, diags := e.Value(nil)
	if diags.HasErrors() || value.IsNull() || !value.IsKnown() || value.Type() != cty.String {
		return "", false
	}
	return value.AsString(), true
}

func (v *Variable) add(values ...string) {
	for _, value := range values {
		if !slices.Contains(v.Values, value) {
			v.Values = append(v.Values, value)
		}
	}
}
