package cli

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/sdk"
)

// This file finds what a person may want to write on the command line about a
// pipeline file: its variables with the values that they may have, its pipelines and its
// knowledge.
//
// It reads syntax alone: nothing is evaluated and no program is started, so a shell can
// ask it at every key. A file that is only half right gives what can be read of it. It
// checks nothing: package pipeline does.

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
	r := suggestReader{f, stages}
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

// suggestReader finds what the variables of a file stand for.
type suggestReader struct {
	file   *File
	stages Stages
}

// named is the variable that an expression is; nil: it is none, or not one alone.
func (r suggestReader) named(e hclsyntax.Expression) *Variable {
	t, ok := e.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 || t.Traversal.RootName() != "var" {
		return nil
	}
	name, ok := t.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return nil
	}
	return r.file.Variable(name.Name)
}

// block gives a variable the values of the arguments that it stands for.
func (r suggestReader) block(body *hclsyntax.Body, is grammar.Block) {
	var used string
	if a := body.Attributes["use"]; a != nil && is.Kind != "" {
		if v := r.named(a.Expr); v != nil {
			v.add(r.stages.Uses(is.Kind)...)
		}
		used, _ = text(a.Expr)
	}
	for _, a := range is.Arguments {
		r.argument(body, a.Argument)
	}
	for _, b := range body.Blocks {
		if inner, ok := is.Inner(b.Type); ok {
			r.block(b.Body, inner)
			continue
		}
		if b.Type != "config" || is.Kind == "" {
			continue
		}
		use := used
		if len(b.Labels) > 0 {
			use = b.Labels[0]
		}
		if stage, ok := r.stages.Stage(is.Kind, use); ok {
			for _, a := range stage.Arguments {
				r.argument(b.Body, a)
			}
		}
	}
}

func (r suggestReader) argument(body *hclsyntax.Body, a sdk.Argument) {
	given := body.Attributes[a.Name]
	if given == nil {
		return
	}
	v := r.named(given.Expr)
	if v == nil {
		return
	}
	v.add(a.OneOf...)
	if a.Type == sdk.TypeBool {
		v.add("true", "false")
	}
	v.Path = v.Path || a.Type == sdk.TypePath
	v.Model = v.Model || a.Type == sdk.TypePath && a.Name == "model" // what sdk.FindModel takes
}

// compared gives variables the texts that the file compares them with.
func (r suggestReader) compared(body *hclsyntax.Body) {
	hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck // it returns none
		op, ok := n.(*hclsyntax.BinaryOpExpr)
		if !ok || op.Op != hclsyntax.OpEqual && op.Op != hclsyntax.OpNotEqual {
			return nil
		}
		for _, side := range [2][2]hclsyntax.Expression{{op.LHS, op.RHS}, {op.RHS, op.LHS}} {
			if v := r.named(side[0]); v != nil {
				if value, ok := text(side[1]); ok && value != "" {
					v.add(value)
				}
			}
		}
		return nil
	})
}
