package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/sdk"
)

// Override replaces the value of an argument of a stage, model or limit block, or of a variable. It is
// checked like a value in the file.
type Override struct {
	// Target is STAGE.ARGUMENT, an argument of the block or of its plugin's config. If stages of
	// several kinds have the name, it is BLOCK.STAGE.ARGUMENT. For the embed, store and chunk blocks
	// of a knowledge it is embed.KNOWLEDGE.ARGUMENT and so on; for others model.NAME.ARGUMENT,
	// limit.NAME.ARGUMENT and var.NAME.
	Target string
	// Value is an HCL expression. Anything else is a text, and so is an expression with a name that
	// files do not know: soft and "soft" are the same.
	Value string
}

// String returns the override as it was given; diagnostics point into this text.
func (o Override) String() string { return o.Target + "=" + o.Value }

// replacement is an override while a file is read.
type replacement struct {
	Override
	block, stage, argument string // block is empty if the target does not name it
	used                   []string
}

// readOverrides parses the targets. It sets variables as -var does.
func (l *loader) readOverrides(variables hcl.Blocks) {
	var names []string
	for _, b := range variables {
		names = append(names, b.Labels[0])
	}
	vars := map[string]string{}
	for name, value := range l.Vars {
		vars[name] = value
	}
	for _, o := range l.Set {
		parts := strings.Split(o.Target, ".")
		switch {
		case len(parts) == 2 && parts[0] == "var" && slices.Contains(names, parts[1]):
			vars[parts[1]] = o.Value
		case len(parts) == 2 && parts[0] == "var":
			l.refuse(o, "%s has no variable %q.%s", l.file.Path, parts[1], rule.DidYouMean(parts[1], names))
		case len(parts) == 2:
			l.overrides = append(l.overrides, &replacement{Override: o, stage: parts[0], argument: parts[1]})
		case len(parts) == 3:
			l.overrides = append(l.overrides, &replacement{Override: o, block: parts[0], stage: parts[1], argument: parts[2]})
		default:
			l.refuse(o, "Name a stage's argument or a variable: STAGE.ARGUMENT, BLOCK.STAGE.ARGUMENT or var.NAME.")
		}
	}
	for _, o := range l.Expected {
		name := strings.TrimPrefix(o.Target, "var.")
		vars[name], l.fromFile[name] = o.Value, true
	}
	l.Vars = vars
}

func (l *loader) refuse(o Override, format string, args ...any) {
	l.add(hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Unknown target", Detail: o.String() + ": " + fmt.Sprintf(format, args...),
	}})
}

// override applies the overrides of a stage to its body. It replaces the block's own arguments first,
// because use decides which config exists. A block without a name has its knowledge's name; then the
// target must name the block's type.
func (l *loader) override(b *stageBody, stage string, names []string) {
	var config []*replacement
	for _, r := range l.overrides {
		if stage != r.stage || r.block != b.block.Type && (r.block != "" || len(b.block.Labels) == 0) {
			continue
		}
		attr := l.attribute(r).AsHCLAttribute()
		_, named := reference(attr.Expr, "model")
		if slices.Contains(names, r.argument) && (r.argument != "model" || named) { // else model is an argument of the config
			b.attrs[r.argument] = attr
			r.used = append(r.used, b.block.Type)
		} else {
			config = append(config, r)
		}
		l.targets = append(l.targets, prefixed(stage, names)...)
	}
	use := l.useOf(*b, l.modelOf(b.attrs))
	info, ok := l.Catalog.Stage(sdk.Kind(b.block.Type), use)
	if !ok || len(config) == 0 {
		return // an unknown use is reported where the stage is read
	}
	written := &hclsyntax.Block{
		Type: "config", Labels: []string{NameOf(use, info)}, LabelRanges: []hcl.Range{b.block.DefRange},
		Body: &hclsyntax.Body{Attributes: hclsyntax.Attributes{}},
	}
	for _, a := range info.Arguments {
		l.targets = append(l.targets, stage+"."+a.Name)
	}
	for _, r := range config {
		if _, ok := argument(info, r.argument); ok {
			written.Body.Attributes[r.argument] = l.attribute(r)
			r.used = append(r.used, b.block.Type)
		}
	}
	b.configs = append(b.configs, written) // the last config for a plugin wins
}

// overrideBlock applies the overrides of a model or limit block with a name to its arguments.
func (l *loader) overrideBlock(kind, name string, attrs hcl.Attributes) {
	names := grammar.Described(kind).Names()
	for _, r := range l.overrides {
		if r.block != kind || r.stage != name {
			continue
		}
		l.targets = append(l.targets, prefixed(name, names)...)
		if slices.Contains(names, r.argument) {
			attrs[r.argument] = l.attribute(r).AsHCLAttribute()
			r.used = append(r.used, r.block)
		}
	}
}

func prefixed(stage string, names []string) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = stage + "." + n
	}
	return all
}

// attribute returns an override as the file would write it.
func (l *loader) attribute(r *replacement) *hclsyntax.Attribute {
	name, src := r.String(), []byte(r.Value)
	l.file.Sources[name], l.typed[name] = &hcl.File{Bytes: src}, r.Value
	e, diags := bounded.ParseExpression(src, name)
	end := hcl.Pos{Line: 1, Column: len(src) + 1, Byte: len(src)}
	whole := hcl.Range{Filename: name, Start: hcl.InitialPos, End: end}
	if diags.HasErrors() || slices.ContainsFunc(e.Variables(), unknownRoot) {
		e = &hclsyntax.LiteralValueExpr{Val: cty.StringVal(r.Value), SrcRange: whole}
	}
	return &hclsyntax.Attribute{Name: r.argument, Expr: e, SrcRange: whole, NameRange: whole, EqualsRange: whole}
}

func unknownRoot(t hcl.Traversal) bool {
	return !slices.Contains([]string{"var", "local", "knowledge", "limit", "model"}, t.RootName())
}

// checkOverrides reports overrides without a target, or with an ambiguous target.
func (l *loader) checkOverrides() {
	var stages []string
	for _, m := range l.models {
		stages = append(stages, m.name)
	}
	for _, limit := range l.file.Limits {
		stages = append(stages, limit.Name)
	}
	for _, k := range l.file.Knowledge {
		stages = append(stages, k.Name)
		for _, s := range k.Enrich {
			stages = append(stages, s.Name)
		}
	}
	for _, p := range l.file.Pipelines {
		for _, s := range p.Stages {
			stages = append(stages, s.Name)
		}
	}
	for _, r := range l.overrides {
		kinds := slices.Compact(slices.Sorted(slices.Values(r.used)))
		switch {
		case len(kinds) > 1 && r.block == "":
			l.refuse(r.Override, "Stages of several kinds are called %q: write %s.%s.", r.stage, kinds[0], r.Target)
		case len(kinds) > 0:
		case !slices.Contains(stages, r.stage):
			l.refuse(r.Override, "There is no stage %q.%s", r.stage, OrList(r.stage, slices.Compact(slices.Sorted(slices.Values(stages)))))
		case grammar.Renamed[r.argument].Advice != "":
			l.refuse(r.Override, "%s", grammar.Renamed[r.argument].Advice)
		default:
			l.refuse(r.Override, "The stage %q has no argument %q.%s", r.stage, r.argument, rule.DidYouMean(r.stage+"."+r.argument, l.targets))
		}
	}
}
