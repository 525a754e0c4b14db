package lsp

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
)

// block is a block of a file, found by its tokens. The root has no type.
type block struct {
	typ    string
	head   span // of the type
	labels []label
	body   span // between the braces
	open   bool // the opening brace has been read
	attrs  []*attr
	blocks []*block
	parent *block
}

type label struct {
	name string
	at   span // without quotes
}

// attr is an argument of a block, found by its tokens.
type attr struct {
	name   string
	at     span // of the name
	value  span // up to the end of the line, or of its brackets
	tokens hclsyntax.Tokens
}

// lex returns the tokens of a file. If the file does not parse, lex reads each line separately, so that
// a missing quote does not swallow the following lines.
func lex(src []byte) (all hclsyntax.Tokens) {
	if _, diags := bounded.Parse(src, ""); !diags.HasErrors() {
		all, _ = hclsyntax.LexConfig(src, "", hcl.InitialPos)
		return all
	}
	at := hcl.InitialPos
	for line := range bytes.Lines(src) {
		tokens, _ := hclsyntax.LexConfig(bytes.TrimRight(line, "\r\n"), "", at)
		all = append(all, tokens[:len(tokens)-1]...) // without the end of the file
		all = append(all, hclsyntax.Token{Type: hclsyntax.TokenNewline, Range: tokens[len(tokens)-1].Range})
		at = hcl.Pos{Line: at.Line + 1, Column: 1, Byte: at.Byte + len(line)}
	}
	return all
}

// outline finds the blocks and arguments of a file, even if it does not parse. It finds none in a
// text larger than MaxSource, which the loader refuses, because the tokens would take many times
// its size.
func outline(src []byte) *block {
	root := &block{open: true, body: span{0, len(src)}}
	if len(src) > bounded.MaxSource {
		return root
	}
	o := outliner{tokens: lex(src), in: root, end: len(src)}
	for o.next < len(o.tokens) {
		o.statement()
	}
	for b := o.in; b.parent != nil; b = b.parent {
		b.body.to = len(src)
	}
	return root
}

// outliner holds the state of outline.
type outliner struct {
	tokens hclsyntax.Tokens
	next   int
	in     *block
	end    int
}

// statement reads the statement that begins with the next token.
func (o *outliner) statement() {
	t := o.tokens[o.next]
	switch {
	case t.Type == hclsyntax.TokenCBrace && o.in.parent != nil:
		o.close(t.Range.Start.Byte)
		o.next++
	case t.Type == hclsyntax.TokenIdent:
		if o.topLevel(o.next) {
			for o.in.parent != nil { // a brace is missing above
				o.close(t.Range.Start.Byte)
			}
		}
		o.header()
	default:
		o.next++
	}
}

func (o *outliner) close(at int) {
	o.in.body.to = at
	o.in = o.in.parent
}

// topLevel reports whether a token at the beginning of a line begins a top-level block.
func (o *outliner) topLevel(i int) bool {
	t := o.tokens[i]
	if t.Type != hclsyntax.TokenIdent || t.Range.Start.Column != 1 {
		return false
	}
	if i+1 < len(o.tokens) && o.tokens[i+1].Type == hclsyntax.TokenEqual {
		return false // an argument, such as limit = ...
	}
	return slices.ContainsFunc(grammar.Blocks(), func(b grammar.Block) bool { return b.Type == string(t.Bytes) })
}

// header reads a block up to its opening brace, or a whole argument.
func (o *outliner) header() {
	first := o.tokens[o.next]
	o.next++
	b := &block{typ: string(first.Bytes), head: spanOf(first), parent: o.in}
	for o.next < len(o.tokens) {
		t := o.tokens[o.next]
		switch t.Type {
		case hclsyntax.TokenIdent:
			b.labels = append(b.labels, label{string(t.Bytes), spanOf(t)})
		case hclsyntax.TokenOQuote:
			b.labels = append(b.labels, label{at: span{t.Range.End.Byte, t.Range.End.Byte}})
		case hclsyntax.TokenQuotedLit:
			if n := len(b.labels); n > 0 {
				b.labels[n-1] = label{string(t.Bytes), spanOf(t)}
			}
		case hclsyntax.TokenCQuote:
		case hclsyntax.TokenEqual:
			o.next++
			if o.entry() { // grammar describes the object like a block
				continue
			}
			o.in.attrs = append(o.in.attrs, o.attribute(b, t.Range.End.Byte))
			return
		case hclsyntax.TokenOBrace:
			o.next++
			b.open, b.body = true, span{t.Range.End.Byte, o.end}
			o.in.blocks = append(o.in.blocks, b)
			o.in = b
			return
		default:
			o.in.blocks = append(o.in.blocks, b) // still incomplete
			return
		}
		o.next++
	}
	o.in.blocks = append(o.in.blocks, b)
}

// entry reports whether the next token begins an object that grammar describes like a block.
func (o *outliner) entry() bool {
	b, _ := grammar.Block{Blocks: grammar.Blocks()}.Inner(o.in.typ)
	return o.in.parent != nil && o.in.parent.parent == nil && b.Entries != nil && o.next < len(o.tokens) && o.tokens[o.next].Type == hclsyntax.TokenOBrace
}

// attribute reads the value of an argument.
func (o *outliner) attribute(b *block, from int) *attr {
	a := &attr{name: b.typ, at: b.head, value: span{from, o.end}}
	depth := 0
	for ; o.next < len(o.tokens); o.next++ {
		t := o.tokens[o.next]
		ends := false
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace:
			ends = depth == 0
			depth--
		case hclsyntax.TokenComma:
			ends = depth == 0
		case hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenNewline, hclsyntax.TokenComment:
			ends = depth <= 0 || o.next+1 < len(o.tokens) && o.topLevel(o.next+1)
		case hclsyntax.TokenEOF:
			ends = true
		}
		if ends {
			a.value.to = t.Range.Start.Byte
			return a
		}
		a.tokens = append(a.tokens, t)
	}
	return a
}

func spanOf(t hclsyntax.Token) span { return span{t.Range.Start.Byte, t.Range.End.Byte} }

// attr returns an argument of the block; nil: it has none of this name.
func (b *block) attr(name string) *attr {
	for _, a := range b.attrs {
		if a.name == name {
			return a
		}
	}
	return nil
}

// literal returns the value of an argument that is a text without templates.
func (a *attr) literal() (string, bool) {
	if a != nil && len(a.tokens) == 3 && a.tokens[1].Type == hclsyntax.TokenQuotedLit {
		return string(a.tokens[1].Bytes), true
	}
	return "", false
}
