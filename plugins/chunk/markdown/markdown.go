package markdown

import (
	"context"
	"strings"

	"github.com/racflow/racflow/plugins/internal/tokenspan"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/section"
)

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("markdown", "Cuts Markdown by its headings, with tables, code and lists kept whole where they fit.", open, sdk.Revision("4"), sdk.PreferBatch(16))
}

func open(_ context.Context, _ sdk.Setup, c tokenspan.Config) (sdk.Chunker, error) {
	return c.Chunker(func(d *sdk.Document, x *tokenspan.Text) []sdk.Chunk {
		if d.Meta["format"] == "code" { // a comment that begins with # is no heading
			return tokenspan.Chunks(tokenspan.Splitter{Size: c.Size, Breaks: tokenspan.Prose()}.Split(x, 0, len(d.Text)))
		}
		p := packer{text: x, size: c.Size, sections: section.Read(d.Text)}
		return p.chunks()
	})
}

// packer joins sections, and cuts those that are too long.
type packer struct {
	text     *tokenspan.Text
	size     int
	sections section.Sections
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
		// of is the section that all joined sections belong to.
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

// whole stands for the section that all belong to.
const whole = -2

func (p *packer) below(i, of int) bool {
	for of != whole && i > of {
		i = p.sections[i].Parent
	}
	return of == whole || i == of
}

// cut cuts a section between its blocks. The blocks up to the heading stay with the one
// behind it.
func (p *packer) cut(i int) {
	s := p.sections[i]
	start := s.Start()
	held := true // only the heading and what is before it, so far
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
		held = held && (b.Kind == section.Heading || b.Kind == section.Matter)
		if j == len(s.Blocks)-1 {
			p.add(sdk.Chunk{Start: start, End: end}, i)
		}
	}
}

// split cuts one block, with the heading before it.
func (p *packer) split(start int, b section.Block, of int) {
	s := tokenspan.Splitter{Size: p.size, Breaks: tokenspan.Prose(), Tables: tokenspan.TableOf(b)}
	if b.Kind == section.Lines {
		s.Breaks = []tokenspan.Break{tokenspan.Lines, tokenspan.Sentences, tokenspan.Words}
	}
	for _, c := range s.Chunks(p.text, start, b.End) {
		p.add(c, of)
	}
}

// add adds a chunk; white space goes with the chunk before it.
func (p *packer) add(c sdk.Chunk, of int) {
	if len(p.out) > 0 {
		c.Start = p.out[len(p.out)-1].End
		if p.text.Blank(c.Start, c.End) {
			p.out[len(p.out)-1].End = c.End
			return
		}
	}
	if path := p.sections.Path(of); len(path) > 0 {
		c.Meta = sdk.Meta{"headings": strings.Join(path, " > ")}
	}
	p.out = append(p.out, c)
}
