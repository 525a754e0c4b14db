package chunk

import (
	"context"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file cuts Markdown by its headings.
//
// A section is a heading with the text up to the next heading of any level. Its path is the headings above it and its
// own heading; it becomes the chunk's metadata "headings": "Guide > Install > Linux". The text before the first
// heading, including front matter, goes with the first section.
//
// A section that fits `size` stays whole. Small successive sections are joined up to size: a section with those below
// it, or sections below the same heading. The chunk's path is then that of the common section. A section that is too
// long is cut between its blocks; its heading stays with the first block. Blocks are tables, fenced and indented
// code, lists, quotes and paragraphs. A block is cut only if it alone is larger than size: a table, code or list at
// lines, another block as by the chunker recursive. A chunk that begins in the rows of a table repeats the table's
// header (sdk.Chunk.Header). The header counts towards the chunk's size, and is not repeated if it takes more than
// half of the size.
//
// Package sdk/support finds headings, blocks and front matter.
//
// Source code among the documents (metadata "format") has no headings, and is cut as by recursive.
//
// The chunks joined are the document: white space between two chunks belongs to the first.

// Markdown describes the chunker.
func Markdown() sdk.Stage {
	return sdk.ChunkStage("markdown", "Cuts Markdown by its headings, with tables, code and lists kept whole where they fit.", openMarkdown, sdk.Revision("4"), sdk.PreferBatch(16))
}

func openMarkdown(_ context.Context, _ sdk.Setup, c SizeConfig) (sdk.Chunker, error) {
	return c.Chunker(func(d *sdk.Document, x *SpanText) []sdk.Chunk {
		if d.Meta["format"] == "code" { // a comment that begins with # is no heading
			return chunks(splitter{Size: c.Size, Breaks: prose()}.split(x, 0, len(d.Text)))
		}
		p := packer{text: x, size: c.Size, sections: support.ReadSections(d.Text)}
		return p.chunks()
	})
}

// packer joins sections, and cuts sections that are too long.
type packer struct {
	text     *SpanText
	size     int
	sections support.Sections
	out      []sdk.Chunk
}

func (p *packer) chunks() []sdk.Chunk {
	for i := 0; i < len(p.sections); {
		first := p.sections[i]
		if p.text.Tokens(first.Start(), first.End()) > p.size {
			p.cut(i)
			i++
			continue
		}
		// of is the section that contains all joined sections.
		of, next := i, i+1
		for ; next < len(p.sections); next++ {
			s := p.sections[next]
			if p.text.Tokens(first.Start(), s.End()) > p.size {
				break
			}
			if p.below(next, of) {
				continue
			}
			if of != i || s.Parent != first.Parent {
				break
			}
			if of = first.Parent; of < 0 {
				of = whole
			}
		}
		p.add(sdk.Chunk{Start: first.Start(), End: p.sections[next-1].End()}, of)
		i = next
	}
	return p.out
}

// whole stands for the section that contains all others.
const whole = -2

func (p *packer) below(i, of int) bool {
	for of != whole && i > of {
		i = p.sections[i].Parent
	}
	return of == whole || i == of
}

// cut cuts a section between its blocks. The blocks up to the heading stay with the block after it.
func (p *packer) cut(i int) {
	s := p.sections[i]
	start := s.Start()
	held := true // so far only the heading and the text before it
	for j, b := range s.Blocks {
		end := b.End
		if p.text.Tokens(start, end) > p.size {
			if !held && start < b.Start {
				p.add(sdk.Chunk{Start: start, End: b.Start}, i)
				start = b.Start
			}
			if p.text.Tokens(start, end) > p.size {
				p.split(start, b, i)
				start, held = end, false
				continue
			}
		}
		held = held && (b.Kind == support.Heading || b.Kind == support.Matter)
		if j == len(s.Blocks)-1 {
			p.add(sdk.Chunk{Start: start, End: end}, i)
		}
	}
}

// split cuts one block, with the heading before it.
func (p *packer) split(start int, b support.Block, of int) {
	s := splitter{Size: p.size, Breaks: prose(), Tables: tableOf(b)}
	if b.Kind == support.LineBlock {
		s.Breaks = []Break{lines, sentenceBreaks, Words}
	}
	for _, c := range s.chunks(p.text, start, b.End) {
		p.add(c, of)
	}
}

// add adds a chunk. White space goes with the previous chunk.
func (p *packer) add(c sdk.Chunk, of int) {
	if len(p.out) > 0 {
		c.Start = p.out[len(p.out)-1].End
		if p.text.blank(c.Start, c.End) {
			p.out[len(p.out)-1].End = c.End
			return
		}
	}
	if path := p.sections.Path(of); len(path) > 0 {
		c.Meta = sdk.Meta{"headings": strings.Join(path, " > ")}
	}
	p.out = append(p.out, c)
}
