package lsp

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// document is a file that is open in an editor.
type document struct {
	uri, path string
	version   int
	text      text
	root      *block
	file      *pipeline.File       // as it was when it last had variables; nil: never
	secrets   *redact.Secrets      // of that file
	required  []plugin.Requirement // as it last had some
}

// request is the work on one question about a document.
type request struct {
	*document
	catalog *known
	place
}

// description is what may stand in a block: the format's own blocks and, of a config
// block, the arguments of the stage that it is for.
func (r *request) description(b *block) grammar.Block {
	if b.parent == nil {
		return grammar.Block{Blocks: grammar.Blocks()}
	}
	outer := r.description(b.parent)
	if b.typ == "config" && outer.Kind != "" {
		return r.config(outer.Kind, b)
	}
	inner, ok := outer.Inner(b.typ)
	if !ok && outer.Entries != nil {
		return grammar.Block{Type: b.typ, Arguments: outer.Entries}
	}
	return inner
}

// config describes a config block: the arguments of the stage that it is for or, where
// that is not known, of all stages of the kind.
func (r *request) config(kind sdk.Kind, b *block) grammar.Block {
	d := grammar.Block{Type: "config", Doc: "Arguments of the stage that is used; with a label, of the stage of that name alone."}
	for _, use := range r.stagesOf(kind, b) {
		stage, _ := r.catalog.Stage(kind, use)
		for _, a := range stage.Arguments {
			add(&d, a)
		}
	}
	return d
}

func add(d *grammar.Block, a sdk.Argument) {
	if slices.ContainsFunc(d.Arguments, func(have grammar.Argument) bool { return have.Name == a.Name }) {
		return
	}
	if _, ok := d.Inner(a.Name); ok {
		return
	}
	if a.Type != sdk.TypeBlock {
		d.Arguments = append(d.Arguments, grammar.Argument{Argument: a})
		return
	}
	inner := grammar.Block{Type: a.Name, Doc: a.Doc}
	for _, field := range a.Fields {
		add(&inner, field)
	}
	d.Blocks = append(d.Blocks, inner)
}

// stagesOf names the stages that a config block may be for.
func (r *request) stagesOf(kind sdk.Kind, config *block) []string {
	if len(config.labels) > 0 {
		return []string{config.labels[0].name}
	}
	if use, ok := r.use(config.parent); ok && slices.Contains(r.catalog.Uses(kind), use) {
		return []string{use}
	}
	return r.catalog.Uses(kind)
}

// use is the stage that a block uses, as far as that is known: a text, or the value
// of a variable.
func (r *request) use(b *block) (string, bool) {
	a := b.attr("use")
	if a == nil && b.typ == "fallback" {
		return r.use(b.parent)
	}
	if a == nil {
		return "", false
	}
	if use, ok := a.literal(); ok {
		return use, true
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(r.text.at(a.value)), "var.")
	v, found := r.variable(name)
	return v.Value, ok && found
}

// variable is a variable with its value, which may be that of an earlier text.
func (r *request) variable(name string) (pipeline.Variable, bool) {
	if r.file != nil {
		for _, v := range r.file.Variables {
			if v.Name == name {
				return v, true
			}
		}
	}
	return pipeline.Variable{Name: name}, false
}

// argument describes the argument at the place.
func (r *request) argument() (grammar.Argument, bool) {
	d := r.description(r.in)
	for _, a := range d.Arguments {
		if a.Name == r.attr.name {
			return a, true
		}
	}
	b, ok := d.Inner(r.attr.name)
	if !ok || r.in.typ != "config" {
		return grammar.Argument{}, false
	}
	return grammar.Argument{Argument: sdk.Argument{Name: b.Type, Type: sdk.TypeBlock, Doc: b.Doc}}, true // written as a value
}

// scope is what stands above the rule at the place, as the loader sees it.
func (r *request) scope(kind rule.Kind) rule.Scope {
	stage, own := r.in, r.in.typ
	if own == "fallback" {
		stage, own = stage.parent, stage.parent.typ
	}
	s := rule.Scope{}
	if stage.parent == nil {
		return s
	}
	for _, b := range stage.parent.blocks {
		if b == stage && kind != rule.Expectation { // which is about the whole pipeline
			break
		}
		s.Candidates = s.Candidates || b.typ == "retrieve"
		s.Voters = s.Voters || b.typ == "sample"
		s.Election = s.Election || b.typ == "elect"
	}
	s.Candidates = s.Candidates || own == "retrieve" && (kind == rule.Keep || kind == rule.Fallback)
	s.Voters = s.Voters || own == "elect" && (kind == rule.Accept || kind == rule.Flag)
	return s
}

// target is a block or argument that a reference names.
type target struct {
	name  string
	at    span
	block *block // of a variable, knowledge or limit
	attr  *attr  // of a local value
}

// targets are what var., local., knowledge. or limit. can name in the file.
func (d *document) targets(root string) []target {
	var all []target
	for _, b := range d.root.blocks {
		switch {
		case root == "local" && b.typ == "locals":
			for _, a := range b.attrs {
				all = append(all, target{name: a.name, at: a.at, attr: a})
			}
		case len(b.labels) > 0 && b.typ == map[string]string{"var": "variable", "knowledge": "knowledge", "limit": "limit"}[root]:
			all = append(all, target{name: b.labels[0].name, at: b.labels[0].at, block: b})
		}
	}
	return all
}

func (d *document) target(root, name string) (target, bool) {
	for _, t := range d.targets(root) {
		if t.name == name {
			return t, true
		}
	}
	return target{}, false
}
