package lsp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/plugin/catalog"
	"github.com/racflow/racflow/sdk"
)

// complete returns the completions at the place.
func (r *request) complete() []completion {
	c := &completing{request: r, items: []completion{}}
	switch {
	case r.head != nil:
		c.header()
	case r.attr == nil && r.atStatement():
		c.statements(span{r.offset, r.offset}, " = ")
	case r.attr == nil:
	case r.attr.at.holds(r.offset):
		c.statements(r.attr.at, "")
	case r.attr.value.holds(r.offset):
		c.value()
	}
	return c.items
}

// atStatement reports whether a block or an argument can begin here.
func (r *request) atStatement() bool {
	from := r.text.lines[r.text.position(r.offset).Line]
	if r.in.parent != nil {
		from = max(from, r.in.body.from)
	}
	return strings.TrimSpace(r.text.at(span{from, r.offset})) == ""
}

// completing collects completions.
type completing struct {
	*request
	items []completion
}

// offer adds a completion that replaces a part of the text.
func (c *completing) offer(at span, kind int, label, text, detail string, about string) {
	item := completion{Label: label, Kind: kind, Detail: detail, SortText: fmt.Sprintf("%04d", len(c.items))}
	item.TextEdit = &textEdit{Range: c.text.rangeOf(at), NewText: text}
	if about != "" {
		item.Documentation = markdown(about)
	}
	c.items = append(c.items, item)
}

// header completes the type of a block, or the label of a config block.
func (c *completing) header() {
	if c.head.head.holds(c.offset) {
		after := " = "
		if c.head.open || len(c.head.labels) > 0 {
			after = ""
		}
		c.statements(c.head.head, after)
		return
	}
	outer := c.description(c.in)
	for _, l := range c.head.labels {
		if l.at.holds(c.offset) && c.head.typ == "config" && outer.Kind != "" {
			c.uses(outer.Kind, l.at, false)
		}
	}
}

// statements completes the statements of a block: blocks, and arguments that the block does not
// have yet, followed by after.
func (c *completing) statements(at span, after string) {
	d := c.description(c.in)
	for _, a := range d.Arguments {
		if have := c.in.attr(a.Name); have == nil || have == c.attr {
			c.offer(at, kindProperty, a.Name, a.Name+after, string(a.Type), aboutArgument(a))
		}
	}
	if d.Kind != "" {
		d.Blocks = append(slices.Clip(d.Blocks), c.config(d.Kind, &block{typ: "config", parent: c.in}))
	}
	for _, b := range d.Blocks {
		c.offer(at, kindModule, b.Type, b.Type, "block", b.Doc)
	}
}

// value completes the value of an argument.
func (c *completing) value() {
	a, ok := c.argument()
	content, inText := c.attr.text(c.offset)
	switch {
	case inText && a.Rule != 0:
		c.rule(a.Rule, content)
	case inText:
		c.texts(a, content, false)
	default:
		c.expression(a, ok)
	}
}

// texts completes a value that must be one of a list of texts.
func (c *completing) texts(a grammar.Argument, at span, quoted bool) {
	if d := c.description(c.in); a.Name == "use" && d.Kind != "" {
		c.uses(d.Kind, at, quoted)
	}
	for _, text := range a.OneOf {
		c.offer(at, kindValue, text, quote(text, quoted), "", "")
	}
}

func (c *completing) uses(kind sdk.Kind, at span, quoted bool) {
	for _, use := range c.catalog.Uses(kind) {
		stage, _ := c.catalog.Stage(kind, use)
		about := catalog.Explain(use, stage)
		for _, name := range []string{use, about.Alias} {
			if name != "" {
				c.offer(at, kindValue, name, quote(name, quoted), string(kind), aboutStage(about))
			}
		}
	}
}

func quote(text string, quoted bool) string {
	if quoted {
		return strconv.Quote(text)
	}
	return text
}

// expression completes names, functions and literal values.
func (c *completing) expression(a grammar.Argument, described bool) {
	w := c.text.wordsAt(c.attr.value, c.offset, "-", false)
	switch at := w.last(); {
	case len(w.parts) == 2:
		c.references(w.parts[0], "", at)
	case len(w.parts) > 2:
	case a.Block != "":
		c.references(a.Block, a.Block+".", at)
	case a.Keywords != nil:
		for _, word := range a.Keywords {
			c.offer(at, kindKeyword, word, word, "", "")
		}
	default:
		if described {
			c.texts(a, at, true)
		}
		if a.Type == sdk.TypeBool {
			c.offer(at, kindKeyword, "true", "true", "", "")
			c.offer(at, kindKeyword, "false", "false", "", "")
		}
		c.references("var", "var.", at)
		c.references("local", "local.", at)
		for _, f := range pipeline.Functions() {
			c.offer(at, kindFunction, f, f+"(", "function", "")
		}
	}
}

// references completes names of the file's values or blocks.
func (c *completing) references(root, prefix string, at span) {
	for _, t := range c.targets(root) {
		c.offer(at, kindVariable, prefix+t.name, prefix+t.name, "", c.aboutTarget(root, t))
	}
}

// rule completes names in a rule.
func (c *completing) rule(kind rule.Kind, content span) {
	if strings.Count(c.text.at(span{content.from, c.offset}), "'")%2 == 1 {
		return // inside a text
	}
	w := c.text.wordsAt(content, c.offset, "", false)
	at, scope := w.last(), c.scope(kind)
	if len(w.parts) == 2 && w.parts[0] == "var" {
		c.references("var", "", at)
		return
	}
	for _, n := range rule.Described(kind) {
		switch {
		case !scope.Offers(n):
		case len(w.parts) == 1:
			c.offer(at, kindVariable, n.Name, n.Name, n.Type, aboutName(n))
		case len(w.parts) == 2 && (w.parts[0] == n.Name || w.parts[0] == "" && strings.HasPrefix(n.Type, "a list")):
			for _, f := range n.Fields {
				c.offer(at, kindField, f.Name, f.Name, f.Type, "")
			}
		}
	}
	if len(w.parts) == 1 {
		c.references("var", "var.", at)
		for _, f := range rule.Functions(kind) {
			c.offer(at, kindFunction, f.Name, f.Name+"(", cmp.Or(f.Form, "function"), f.Doc)
		}
	}
}

// place is a place in a file that a request is about.
type place struct {
	offset int
	in     *block // the innermost block
	head   *block // the block whose type or labels contain it; nil: none
	attr   *attr  // the argument that contains it; nil: none
}

// locate returns the place at an offset.
func locate(b *block, offset int) place {
	for _, inner := range b.blocks {
		end := inner.head.to
		if n := len(inner.labels); n > 0 {
			end = inner.labels[n-1].at.to
		}
		switch {
		case inner.open && inner.body.holds(offset):
			return locate(inner, offset)
		case span{inner.head.from, end}.holds(offset):
			return place{offset: offset, in: b, head: inner}
		}
	}
	for _, a := range b.attrs {
		if a.at.from <= offset && offset <= a.value.to {
			return place{offset: offset, in: b, attr: a}
		}
	}
	return place{offset: offset, in: b}
}

// text returns the content of the quoted text or heredoc that contains an offset. It reports false
// if the offset is in an expression, even inside a text.
func (a *attr) text(offset int) (content span, ok bool) {
	var open []hclsyntax.Token
	depth := 0 // number of open brackets and texts at offset
	for _, t := range a.tokens {
		before := t.Range.End.Byte <= offset
		if !before && !ok && content == (span{}) {
			if depth = len(open); depth == 0 || !beginsText(open[depth-1]) {
				return span{}, false
			}
			content, ok = span{open[depth-1].Range.End.Byte, a.value.to}, true
		}
		switch t.Type {
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd,
			hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen:
			if open = open[:max(0, len(open)-1)]; ok && len(open) < depth {
				content.to = t.Range.Start.Byte
				return content, true
			}
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl,
			hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen:
			open = append(open, t)
		}
	}
	if !ok && len(open) > 0 && beginsText(open[len(open)-1]) { // the text is still unclosed
		return span{open[len(open)-1].Range.End.Byte, a.value.to}, true
	}
	return content, ok
}

func beginsText(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenOQuote || t.Type == hclsyntax.TokenOHeredoc
}

// words is a dotted name, such as var.model.
type words struct {
	parts []string
	at    []span
}

// wordsAt returns the name that ends at an offset or, if whole is set, the name that contains it.
// further lists characters of names beside letters, digits, _ and dots.
func (t text) wordsAt(within span, offset int, further string, whole bool) words {
	part := func(c byte) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(further, c) >= 0
	}
	from, to := offset, offset
	for from > within.from && part(t.src[from-1]) {
		from--
	}
	for whole && to < within.to && part(t.src[to]) {
		to++
	}
	var w words
	for p := range strings.SplitSeq(t.src[from:to], ".") {
		w.parts = append(w.parts, p)
		w.at = append(w.at, span{from, from + len(p)})
		from += len(p) + 1
	}
	return w
}

// last returns the span of the part that is being typed.
func (w words) last() span { return w.at[len(w.at)-1] }

// part returns the index of the part that contains an offset.
func (w words) part(offset int) int {
	for i, at := range w.at {
		if at.holds(offset) {
			return i
		}
	}
	return 0
}
