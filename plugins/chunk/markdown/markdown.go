package markdown

import (
	"context"
	"strings"

	"github.com/racflow/racflow/plugins/internal/cut"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Size      int    `config:"size" default:"200" doc:"Most tokens of a chunk."`
	Tokenizer string `config:"tokenizer" default:"words" one_of:"words,characters,minilm" doc:"What size counts: words (and parts of 6 letters of longer ones), characters, or the WordPiece tokens of minilm."`
}

// Stage describes the chunker.
func Stage() sdk.Stage {
	return sdk.ChunkStage("markdown", "Cuts Markdown by its headings, with tables, code and lists kept whole where they fit.", open, sdk.PreferBatch(16))
}

func open(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
	tokenizer, err := cut.Limits(c.Tokenizer, c.Size, 0)
	if err != nil {
		return nil, err
	}
	return cut.Chunker(func(d sdk.Document) []sdk.Chunk {
		x := tokenizer.Read(d.Text)
		if x.Blank(0, len(d.Text)) {
			return nil
		}
		p := packer{text: x, size: c.Size, sections: sections(d.Text)}
		return p.chunks()
	}), nil
}

// A section is a heading with its blocks.
type section struct {
	title  string
	level  int // 1 to 6; 0: before the first heading
	parent int // the section above it, or -1
	blocks []block
}

func (s section) start() int { return s.blocks[0].start }
func (s section) end() int   { return s.blocks[len(s.blocks)-1].end }

// sections reads a document; each section has at least one block, the first of
// which is its heading.
func sections(text string) []section {
	var all []section
	var open []int // the headings that the next belongs to
	for _, b := range blocks(text) {
		if b.kind != heading {
			if len(all) == 0 {
				all = append(all, section{parent: -1})
			}
			last := &all[len(all)-1]
			last.blocks = append(last.blocks, b)
			continue
		}
		if len(all) == 1 && all[0].level == 0 { // what is before the first heading
			all[0].title, all[0].level = b.title, b.level
			all[0].blocks = append(all[0].blocks, b)
			open = append(open, 0)
			continue
		}
		for len(open) > 0 && all[open[len(open)-1]].level >= b.level {
			open = open[:len(open)-1]
		}
		s := section{title: b.title, level: b.level, parent: -1, blocks: []block{b}}
		if len(open) > 0 {
			s.parent = open[len(open)-1]
		}
		open = append(open, len(all))
		all = append(all, s)
	}
	return all
}

// packer joins sections, and cuts those that are too long.
type packer struct {
	text     *cut.Text
	size     int
	sections []section
	out      []sdk.Chunk
}

func (p *packer) chunks() []sdk.Chunk {
	for i := 0; i < len(p.sections); {
		first := p.sections[i]
		if p.text.Tokens(first.start(), first.end()) > p.size {
			p.cut(i)
			i++
			continue
		}
		// of is the section to which all that are joined belong.
		of, next := i, i+1
		for ; next < len(p.sections); next++ {
			s := p.sections[next]
			if p.text.Tokens(first.start(), s.end()) > p.size {
				break
			}
			if p.below(next, of) {
				continue
			}
			if of != i || s.parent != first.parent {
				break
			}
			if of = first.parent; of < 0 {
				of = whole
			}
		}
		p.add(cut.Span{Start: first.start(), End: p.sections[next-1].end()}, of)
		i = next
	}
	return p.out
}

// whole stands for the section that all belong to.
const whole = -2

func (p *packer) below(i, of int) bool {
	for of != whole && i > of {
		i = p.sections[i].parent
	}
	return of == whole || i == of
}

// cut cuts a section between its blocks. Its first blocks up to the heading stay
// with the one behind it.
func (p *packer) cut(i int) {
	s := p.sections[i]
	start := s.start()
	held := true // nothing but a heading and what is before it, so far
	for j, b := range s.blocks {
		end := b.end
		if p.text.Tokens(start, end) > p.size {
			if !held && start < b.start {
				p.add(cut.Span{Start: start, End: b.start}, i)
				start = b.start
			}
			if p.text.Tokens(start, end) > p.size {
				p.split(start, b, i)
				start, held = end, false
				continue
			}
		}
		held = held && (b.kind == heading || b.kind == matter)
		if j == len(s.blocks)-1 {
			p.add(cut.Span{Start: start, End: end}, i)
		}
	}
}

// split cuts one block, with the heading before it.
func (p *packer) split(start int, b block, of int) {
	s := cut.Splitter{Size: p.size, Breaks: cut.Prose()}
	if b.kind == lines {
		s.Breaks = []cut.Break{cut.Lines, cut.Sentences, cut.Words}
	}
	for _, span := range s.Split(p.text, start, b.end) {
		p.add(span, of)
	}
}

// add adds a chunk; white space goes with the chunk before it.
func (p *packer) add(s cut.Span, of int) {
	if len(p.out) > 0 {
		s.Start = p.out[len(p.out)-1].End
		if p.text.Blank(s.Start, s.End) {
			p.out[len(p.out)-1].End = s.End
			return
		}
	}
	c := sdk.Chunk{Start: s.Start, End: s.End}
	if path := p.path(of); path != "" {
		c.Meta = sdk.Meta{"headings": path}
	}
	p.out = append(p.out, c)
}

// path is the titles from the top down to a section, cut in the middle where there
// is no end to it.
func (p *packer) path(i int) string {
	var titles []string
	for ; i >= 0; i = p.sections[i].parent {
		if t := p.sections[i].title; t != "" {
			titles = append([]string{t}, titles...)
		}
	}
	return strings.Join(titles, " > ")
}
