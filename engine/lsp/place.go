package lsp

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// place is where in a file something is asked for.
type place struct {
	offset int
	in     *block // the innermost block
	head   *block // the block whose type or labels are here; nil: none
	attr   *attr  // the argument that is here; nil: none
}

// locate finds the place of an offset.
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

// literal returns the content of the quoted text or heredoc that an offset is in. It
// reports false where the offset is in an expression, also in one within a text.
func (a *attr) text(offset int) (content span, ok bool) {
	var open []hclsyntax.Token
	depth := 0 // of open when offset was reached
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
	if !ok && len(open) > 0 && beginsText(open[len(open)-1]) { // it has no end yet
		return span{open[len(open)-1].Range.End.Byte, a.value.to}, true
	}
	return content, ok
}

func beginsText(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenOQuote || t.Type == hclsyntax.TokenOHeredoc
}

// words is a dotted name, such as var.model, around or before an offset.
type words struct {
	parts []string
	at    []span
}

// wordsAt returns the name that ends at an offset or, where whole is set, the one that
// the offset is in. further are characters of names beside letters, digits and _.
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

// last is the part that is being written.
func (w words) last() span { return w.at[len(w.at)-1] }

// part returns which part an offset is in.
func (w words) part(offset int) int {
	for i, at := range w.at {
		if at.holds(offset) {
			return i
		}
	}
	return 0
}
