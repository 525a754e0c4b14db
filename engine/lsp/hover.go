package lsp

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/engine/schema"
	"github.com/racflow/racflow/sdk"
)

// hover explains what is at the place; false: there is nothing to say.
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
	a, _ := r.argument()
	content, inText := r.attr.text(r.offset)
	switch {
	case inText && a.Rule != 0:
		return r.hoverRule(a.Rule, content)
	case inText && a.Name == "use":
		return r.aboutUse(r.description(r.in).Kind, r.text.at(content), content)
	case inText:
		return "", span{}, false
	}
	t, root, at, ok := r.reference(r.attr.value, "-")
	if !ok {
		return "", span{}, false
	}
	return r.aboutTarget(root, t), at, true
}

// hoverRule explains a name in a rule.
func (r *request) hoverRule(kind rule.Kind, content span) (about string, at span, ok bool) {
	if t, root, at, ok := r.reference(content, ""); ok && root == "var" {
		return r.aboutTarget(root, t), at, true
	}
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

// reference finds what a name such as var.x at the place stands for.
func (r *request) reference(within span, further string) (t target, root string, at span, ok bool) {
	w := r.text.wordsAt(within, r.offset, further, true)
	if len(w.parts) < 2 || r.offset > w.at[1].to {
		return target{}, "", span{}, false
	}
	t, ok = r.target(w.parts[0], w.parts[1])
	return t, w.parts[0], span{w.at[0].from, w.at[1].to}, ok
}

// definition is where what is named at the place is written.
func (r *request) definition() (span, bool) {
	if r.attr == nil || !r.attr.value.holds(r.offset) {
		return span{}, false
	}
	within, further := r.attr.value, "-"
	if content, inText := r.attr.text(r.offset); inText {
		if a, _ := r.argument(); a.Rule == 0 {
			return span{}, false
		}
		within, further = content, ""
	}
	t, root, _, ok := r.reference(within, further)
	if further == "" && root != "var" {
		return span{}, false // a rule names nothing else of the file
	}
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
	return aboutStage(schema.Of(use, stage)), at, ok
}

func aboutStage(s schema.Stage) string {
	var b strings.Builder
	_ = schema.Text(&b, s) // a builder takes everything
	head, _, _ := strings.Cut(b.String(), "\n\n")
	title, rest, _ := strings.Cut(head, "\n")
	return fmt.Sprintf("**%s**\n\n%s\n\n```hcl\n%s```", title, rest, s.Example)
}

// typeOf is the type of an argument, in a word.
func typeOf(a grammar.Argument) string { return string(a.Type) }

func aboutArgument(a grammar.Argument) string {
	facts := append([]string{typeOf(a)}, schema.Facts(a.Argument)...)
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
	if n.Needs != "" && n.Doc == "" { // a figure is of the whole pipeline
		text += "\n\nIt needs " + n.Needs + " above."
	}
	return text
}

// maxShown is how many bytes of a value are shown.
const maxShown = 300

// aboutTarget explains what a reference names. Values come from the loader, which
// shows a secret as (secret).
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

// code is a value as a block of code, without secrets, and cut where it is long.
func (r *request) code(text string) string {
	if r.secrets != nil {
		text = r.secrets.Message(text)
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return "\n\n````\n" + strings.ReplaceAll(text, "````", "") + "\n````"
}
