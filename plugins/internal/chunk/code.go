package chunk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// This file cuts source code by its declarations.
//
// Package plugins/internal/syntax divides a file into units: at the top level first, then inside units that are too
// large. A unit that fits `size` stays whole, and small successive units are joined up to size. A larger unit is cut
// at the units inside it: a class into methods, a method into statements, with the lines above its body as the first
// part. Code without further units is cut at empty lines, lines and words.
//
// A chunk's metadata "declaration" has the signatures of the declarations around it, the outermost first, and of
// those inside it: "class Cart > void add(Item i); void clear()".
//
// The language is the argument `language`, or follows from the suffix of the document's "path" (or of its id if it
// has no path). A document of unknown language is cut as by the chunker recursive. Every chunk stays within size. The
// chunks joined are the document: white space between two chunks belongs to the first.

type codeConfig struct {
	SizeConfig
	Language string `config:"language" doc:"The language of all documents, such as go, java, c, cpp, csharp, javascript, typescript, rust, kotlin, swift, scala, php, python, yaml, ruby or shell; by default the end of a document's path decides."`
}

// Code describes the chunker.
func Code() sdk.Stage {
	return sdk.ChunkStage("code", "Cuts source code by its declarations, in languages with braces or indentation.", openCode, sdk.Revision(revision), sdk.PreferBatch(16), sdk.Validates(codeConfig.check))
}

// check reports the errors that tags cannot find.
func (c codeConfig) check() error {
	if c.Language != "" && syntax.Named(c.Language) == nil {
		return &sdk.ArgumentError{Argument: "language", Err: fmt.Errorf("%q is not one of %s", c.Language, strings.Join(syntax.Names(), ", "))}
	}
	return nil
}

func openCode(_ context.Context, _ sdk.Setup, c codeConfig) (sdk.Chunker, error) {
	return c.Chunker(func(d *sdk.Document, x *SpanText) []sdk.Chunk {
		l := syntax.Named(c.Language)
		if l == nil {
			l = syntax.LanguageOf(d)
		}
		if l == nil {
			return chunks(splitter{Size: c.Size, Breaks: prose()}.split(x, 0, len(d.Text)))
		}
		f := file{File: l.Read(d.Text), text: x, size: c.Size}
		f.cut(f.Units(), 0, nil, true)
		return f.chunks()
	})
}

// declarationLimit is the most bytes of signatures in a chunk's metadata.
const declarationLimit = 400

// file is a document that is being cut.
type file struct {
	*syntax.File
	text   *SpanText
	size   int
	pieces []piece
}

// piece is a unit that fits, or a part of a larger one.
type piece struct {
	Span
	within    []string // the signatures around it
	signature string   // its own
	head      bool     // it is above the body that contains the next pieces
}

// cut cuts units. The text between byte start and the first unit goes with that unit. declared says whether the units
// are declarations.
func (f *file) cut(units []syntax.Unit, start int, within []string, declared bool) {
	for _, u := range units {
		p := piece{Span: Span{Start: start, End: u.End}, within: within}
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
		// The lines above the body are a part of their own, which is joined with the following piece if both fit.
		if at := inside[0].Start; f.text.Tokens(p.Start, at) > f.size {
			f.split(Span{Start: p.Start, End: at}, around)
		} else {
			f.pieces = append(f.pieces, piece{Span: Span{Start: p.Start, End: at}, within: around, head: true})
		}
		f.cut(inside, inside[0].Start, around, declared && f.Declares(p.signature))
	}
}

// split cuts text that has no units.
func (f *file) split(s Span, within []string) {
	breaks := []Break{paragraphs, lines, Words}
	for _, part := range (splitter{Size: f.size, Breaks: breaks}).split(f.text, s.Start, s.End) {
		f.pieces = append(f.pieces, piece{Span: part, within: within})
	}
}

// chunks joins successive pieces: pieces in the same unit, the lines above a body with the body, and small pieces
// with their neighbours.
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
		if n := len(out); n > 0 && f.text.blank(c.Start, c.End) {
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

// joins reports whether piece next can join the pieces from first on.
func (f *file) joins(first, next int) bool {
	a, b := f.pieces[next-1], f.pieces[next]
	if f.text.Tokens(f.pieces[first].Start, b.End) > f.size {
		return false
	}
	small := f.size / 8
	return a.head || slices.Equal(a.within, b.within) ||
		f.text.Tokens(f.pieces[first].Start, a.End) <= small || !b.head && f.text.Tokens(b.Start, b.End) <= small
}

// declaration returns the signatures for a chunk's metadata. If the chunk lies in several units, the unit with the
// largest part of it counts.
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
