package lsp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
)

// document is an open file of an editor.
type document struct {
	uri, path string
	version   int
	text      text
	root      *block
	file      *pipeline.File   // from the last text with variables; nil: no text had variables
	secrets   *redact.Secrets  // of that file
	required  []require.Plugin // of the last text with required plugins
}

// request is a question about a place in a document.
type request struct {
	*document
	catalog pipeline.Catalog
	place
}

// description describes what a block may contain: the format's blocks and arguments or, in a config
// block, the arguments of its stage.
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

// config describes a config block: the arguments of its stage or, if the stage is unknown, of all
// stages of the kind.
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

// stagesOf names the stages that a config block may belong to.
func (r *request) stagesOf(kind sdk.Kind, config *block) []string {
	if len(config.labels) > 0 {
		return []string{config.labels[0].name}
	}
	if use, ok := r.use(config.parent); ok && (slices.Contains(r.catalog.Uses(kind), use) || !strings.Contains(use, "/")) {
		if _, is := r.catalog.Stage(kind, use); is {
			return []string{use}
		}
	}
	return r.catalog.Uses(kind)
}

// use returns the stage that a block uses, if it is a text or a variable with a known value.
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

// variable returns a variable with its value, which may come from an earlier text.
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
	return grammar.Argument{Argument: sdk.Argument{Name: b.Type, Type: sdk.TypeBlock, Doc: b.Doc}}, true // a block as a value
}

// scope returns the kinds of stages above the rule at the place, as the loader does.
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
		if b == stage && kind != rule.Expectation { // an expectation is about the whole pipeline
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

// target is a block or argument that a reference can name.
type target struct {
	name  string
	at    span
	block *block // of a reference to a variable, knowledge, limit or model
	attr  *attr  // of a reference to a local value
}

// targets returns everything in the file that var., local., knowledge., limit. or model. can name.
func (d *document) targets(root string) []target {
	var all []target
	for _, b := range d.root.blocks {
		switch {
		case root == "local" && b.typ == "locals":
			for _, a := range b.attrs {
				all = append(all, target{name: a.name, at: a.at, attr: a})
			}
		case len(b.labels) > 0 && b.typ == map[string]string{"var": "variable", "knowledge": "knowledge", "limit": "limit", "model": "model"}[root]:
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

// hover explains the text at the place; false: there is nothing to explain.
func (r *request) hover() (about string, at span, ok bool) {
	switch {
	case r.head != nil && r.head.head.holds(r.offset):
		return r.aboutBlock(), r.head.head, r.aboutBlock() != ""
	case r.head != nil:
		for _, l := range r.head.labels {
			if l.at.holds(r.offset) && r.head.typ == "config" {
				return r.aboutUse(r.description(r.in).Kind, l.name, l.at)
			}
		}
	case r.attr == nil:
	case r.attr.at.holds(r.offset):
		a, ok := r.argument()
		return aboutArgument(a), r.attr.at, ok
	case r.attr.value.holds(r.offset):
		return r.hoverValue()
	}
	return "", span{}, false
}

func (r *request) hoverValue() (about string, at span, ok bool) {
	if t, root, at, ok := r.reference(); ok {
		return r.aboutTarget(root, t), at, true
	}
	a, _ := r.argument()
	content, inText := r.attr.text(r.offset)
	switch {
	case inText && a.Rule != 0:
		return r.hoverRule(a.Rule, content)
	case inText && a.Name == "use":
		return r.aboutUse(r.description(r.in).Kind, r.text.at(content), content)
	}
	return "", span{}, false
}

// hoverRule explains a name in a rule.
func (r *request) hoverRule(kind rule.Kind, content span) (about string, at span, ok bool) {
	w := r.text.wordsAt(content, r.offset, "", true)
	i := w.part(r.offset)
	for _, f := range rule.Functions(kind) {
		if f.Name == w.parts[0] && f.Doc != "" && i == 0 {
			return fmt.Sprintf("**%s**\n\n%s", f.Form, f.Doc), w.at[0], true
		}
	}
	for _, n := range rule.Described(kind) {
		if n.Name == w.parts[0] && i == 0 {
			return aboutName(n), w.at[0], true
		}
		for _, f := range n.Fields {
			if i == 1 && f.Name == w.parts[1] && (n.Name == w.parts[0] || w.parts[0] == "") {
				return fmt.Sprintf("**%s.%s**: %s", n.Name, f.Name, f.Type), w.at[1], true
			}
		}
	}
	return "", span{}, false
}

// reference finds the target of a name such as var.x at the place: in an expression, or in a rule, which can name only
// the file's variables.
func (r *request) reference() (t target, root string, at span, ok bool) {
	within, further := r.attr.value, "-"
	content, inText := r.attr.text(r.offset)
	if inText {
		within, further = content, ""
	}
	a, _ := r.argument()
	w := r.text.wordsAt(within, r.offset, further, true)
	if len(w.parts) < 2 || r.offset > w.at[1].to || inText && (a.Rule == 0 || w.parts[0] != "var") {
		return target{}, "", span{}, false
	}
	t, ok = r.target(w.parts[0], w.parts[1])
	return t, w.parts[0], span{w.at[0].from, w.at[1].to}, ok
}

// definition returns where the thing named at the place is defined.
func (r *request) definition() (span, bool) {
	if r.attr == nil || !r.attr.value.holds(r.offset) {
		return span{}, false
	}
	t, _, _, ok := r.reference()
	return t.at, ok
}

func (r *request) aboutBlock() string {
	d := r.description(r.in)
	b, ok := d.Inner(r.head.typ)
	if r.head.typ == "config" && d.Kind != "" {
		b, ok = r.config(d.Kind, r.head), true
	}
	if !ok {
		return ""
	}
	return fmt.Sprintf("**%s**\n\n%s", b.Type, b.Doc)
}

func (r *request) aboutUse(kind sdk.Kind, use string, at span) (string, span, bool) {
	stage, ok := r.catalog.Stage(kind, use)
	return aboutStage(catalog.Explain(use, stage)), at, ok
}

func aboutStage(s catalog.StageInfo) string {
	var b strings.Builder
	_ = catalog.StageText(&b, s) // a builder never fails
	head, _, _ := strings.Cut(b.String(), "\n\n")
	title, rest, _ := strings.Cut(head, "\n")
	return fmt.Sprintf("**%s**\n\n%s\n\n```hcl\n%s```", title, rest, s.Example)
}

func aboutArgument(a grammar.Argument) string {
	facts := append([]string{string(a.Type)}, catalog.FactsOf(a.Argument)...)
	return fmt.Sprintf("**%s** (%s)\n\n%s", a.Name, strings.Join(facts, "; "), a.Doc)
}

func aboutName(n rule.Name) string {
	text := fmt.Sprintf("**%s**: %s", n.Name, n.Type)
	var fields []string
	for _, f := range n.Fields {
		fields = append(fields, f.Name)
	}
	if len(fields) > 0 {
		text += ", with " + strings.Join(fields, ", ")
	}
	if n.Doc != "" {
		text += "\n\n" + n.Doc
	}
	if n.Needs != "" && n.Doc == "" { // figures need a stage anywhere in the pipeline, not only above
		text += "\n\nIt needs " + n.Needs + " above."
	}
	return text
}

// maxShown is how many bytes of a value hover shows.
const maxShown = 300

// aboutTarget explains the target of a reference. The loader gives the values, with (secret) for
// secrets.
func (r *request) aboutTarget(root string, t target) string {
	text := fmt.Sprintf("**%s.%s**", root, t.name)
	switch {
	case t.attr != nil:
		return text + r.code(strings.TrimSpace(r.text.at(t.attr.value)))
	case root == "var":
		v, known := r.variable(t.name)
		if doc, ok := t.block.attr("description").literal(); ok {
			text += "\n\n" + doc
		}
		if known {
			text += "\n\nNow (" + v.From + "):" + r.code(v.Value)
		}
	}
	return text
}

// code returns a value as a code block, without secrets, and cut if it is long.
func (r *request) code(text string) string {
	if r.secrets != nil {
		text = r.secrets.Message(text)
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return "\n\n````\n" + strings.ReplaceAll(text, "````", "") + "\n````"
}
