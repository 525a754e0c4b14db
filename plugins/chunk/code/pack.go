package code

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/plugins/internal/tokenspan"
	"github.com/racflow/racflow/sdk"
)

// declarationLimit is how many bytes of signatures a chunk's metadata holds.
const declarationLimit = 400

// file is a document that is being cut.
type file struct {
	*syntax.File
	text   *tokenspan.Text
	size   int
	pieces []piece
}

// piece is a unit that fits, or a part of one that does not.
type piece struct {
	tokenspan.Span
	within    []string // the signatures of what it is in
	signature string   // its own
	head      bool     // it is above the body that the next are in
}

// cut cuts units. What is before the first, from byte start on, goes with it.
// declared says whether they are declarations.
func (f *file) cut(units []syntax.Unit, start int, within []string, declared bool) {
	for _, u := range units {
		p := piece{Span: tokenspan.Span{Start: start, End: u.End}, within: within}
		start = p.End
		if declared {
			p.signature = f.Signature(u)
		}
		if f.text.Tokens(p.Start, p.End) <= f.size {
			f.pieces = append(f.pieces, p)
			continue
		}
		around := within
		if p.signature != "" {
			around = append(slices.Clip(within), p.signature)
		}
		inside := f.Inside(u)
		if inside == nil {
			f.split(p.Span, around)
			continue
		}
		// The lines above the body are a part of their own, joined with what follows
		// where that fits.
		if at := inside[0].Start; f.text.Tokens(p.Start, at) > f.size {
			f.split(tokenspan.Span{Start: p.Start, End: at}, around)
		} else {
			f.pieces = append(f.pieces, piece{Span: tokenspan.Span{Start: p.Start, End: at}, within: around, head: true})
		}
		f.cut(inside, inside[0].Start, around, declared && f.Declares(u, p.signature))
	}
}

// split cuts what has no units.
func (f *file) split(s tokenspan.Span, within []string) {
	breaks := []tokenspan.Break{tokenspan.Paragraphs, tokenspan.Lines, tokenspan.Words}
	for _, part := range (tokenspan.Splitter{Size: f.size, Breaks: breaks}).Split(f.text, s.Start, s.End) {
		f.pieces = append(f.pieces, piece{Span: part, within: within})
	}
}

// chunks joins pieces that follow each other: those in the same unit, what is above
// a body with what is in it, and small ones with whatever is next to them.
func (f *file) chunks() []sdk.Chunk {
	var out []sdk.Chunk
	for i := 0; i < len(f.pieces); {
		next := i + 1
		for next < len(f.pieces) && f.joins(i, next) {
			next++
		}
		c := sdk.Chunk{Start: f.pieces[i].Start, End: f.pieces[next-1].End}
		if d := f.declaration(f.pieces[i:next]); d != "" {
			c.Meta = sdk.Meta{"declaration": d}
		}
		if n := len(out); n > 0 && f.text.Blank(c.Start, c.End) {
			out[n-1].End = c.End
		} else {
			out = append(out, c)
		}
		i = next
	}
	if len(out) > 0 {
		out[0].Start = 0
		out[len(out)-1].End = len(f.text.String)
	}
	return out
}

// joins says whether a piece can join those from first on.
func (f *file) joins(first, next int) bool {
	a, b := f.pieces[next-1], f.pieces[next]
	if f.text.Tokens(f.pieces[first].Start, b.End) > f.size {
		return false
	}
	small := f.size / 8
	return a.head || slices.Equal(a.within, b.within) ||
		f.text.Tokens(f.pieces[first].Start, a.End) <= small || !b.head && f.text.Tokens(b.Start, b.End) <= small
}

// declaration is what a chunk's metadata say it is in, and holds. Where it is in
// several units, the one counts that it has most of.
func (f *file) declaration(pieces []piece) string {
	main, most, tokens := pieces[0].within, 0, 0
	for i, p := range pieces {
		if i > 0 && !slices.Equal(p.within, pieces[i-1].within) {
			tokens = 0
		}
		if tokens += f.text.Tokens(p.Start, p.End); tokens > most {
			main, most = p.within, tokens
		}
	}
	var own []string
	size := 0
	for _, p := range pieces {
		if p.signature != "" && slices.Equal(p.within, main) && size+len(p.signature) < declarationLimit {
			own = append(own, p.signature)
			size += len(p.signature)
		}
	}
	path := slices.Clip(main)
	if len(own) > 0 {
		path = append(path, strings.Join(own, "; "))
	}
	return strings.Join(path, " > ")
}
