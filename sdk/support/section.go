package support

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// This file finds the headings of Markdown and the blocks between them. Chunkers need them, and code
// that says where in a document a passage stands.
//
// A section is a heading with the blocks that follow, up to the next heading of any level. Blocks
// before the first heading, front matter included, belong to the first section. Paragraphs, quotes,
// lists, tables, HTML, fenced and indented code are blocks.
//
// The goldmark library reads the blocks of CommonMark. The package adds tables, with a | in the row
// below their head, and front matter (YAML between ---, TOML between +++), in which nothing is a
// heading. Headings inside lists and quotes do not count. Titles keep their inline marks: links,
// images and emphasis stay text. Reading takes time linear in the length of the text.

// Section is a heading with its blocks; the heading is one of the blocks. The first section also has
// the blocks before its heading.
type Section struct {
	Title  string
	Parent int // index of the section above; -1: none
	Blocks []Block
	level  int // 1 to 6; 0: there is no heading
}

// BlockKind is the kind of a block.
type BlockKind uint8

// The kinds of blocks.
const (
	Prose     BlockKind = iota // paragraphs, quotes and rules
	LineBlock                  // tables, code, lists and HTML, which are cut at lines
	Heading                    // ATX (# Title) or setext (underlined with === or ---)
	Matter                     // front matter
)

// Block is a part of a document with the empty lines behind it: the bytes from Start up to End. The
// blocks of a document follow each other without a gap.
type Block struct {
	Kind       BlockKind
	Start, End int
	Rows       int    // of a table: the byte at which the rows below its header begin; 0: the block is no table
	title      string // of a heading
	level      int
}

// maxTitle bounds titles, which become metadata, in bytes.
const maxTitle = 200

const byteOrderMark = "\uFEFF"

// blocks reads a document.
func blocks(document string) []Block {
	var all []Block
	front := FrontMatter(document)
	if front > 0 {
		all = append(all, Block{Kind: Matter})
	} else if strings.HasPrefix(document, byteOrderMark) {
		front = len(byteOrderMark)
	}
	source := []byte(document[front:])
	root := commonMark.Parse(text.NewReader(source))
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		b := Block{Start: front + bytes.LastIndexByte(source[:n.Pos()], '\n') + 1}
		if len(all) > 0 && b.Start <= all[len(all)-1].Start {
			continue // goldmark may put a heading behind a table from the same paragraph
		}
		switch n := n.(type) {
		case *ast.Heading:
			b.Kind, b.title, b.level = Heading, titleOf(n, source), n.Level
		case *extension.Table:
			b.Kind, b.Rows = LineBlock, lineAfter(document, lineAfter(document, b.Start))
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.List, *ast.HTMLBlock:
			b.Kind = LineBlock
		}
		all = append(all, b)
	}
	for i := range all {
		all[i].End = len(document)
		if i > 0 {
			all[i-1].End = all[i].Start
		}
	}
	if len(all) > 0 {
		all[0].Start = 0
	}
	return all
}

// lineAfter returns the beginning of the next line.
func lineAfter(document string, at int) int {
	if i := strings.IndexByte(document[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(document)
}

func titleOf(n *ast.Heading, source []byte) string {
	title := strings.Join(strings.Fields(string(n.Lines().Value(source))), " ")
	if len(title) > maxTitle {
		title = title[:maxTitle]
		for !utf8.ValidString(title) {
			title = title[:len(title)-1]
		}
	}
	return title
}

// FrontMatter returns the end of a document's front matter; 0: it has none.
func FrontMatter(document string) int {
	fence, at := "", 0
	for line := range strings.Lines(document) {
		at += len(line)
		switch line = strings.TrimRight(strings.TrimPrefix(line, byteOrderMark), " \t\r\n"); {
		case fence == "" && line != "---" && line != "+++":
			return 0
		case fence == "":
			fence = line
		case line == fence || fence == "---" && line == "...":
			return at
		}
	}
	return 0
}

// commonMark reads blocks, but no inline marks.
var commonMark = parser.NewParser(
	parser.WithBlockParsers(blockParsers()...),
	parser.WithParagraphTransformers(util.Prioritized(linkReferences{}, 100), util.Prioritized(tables{}, 200)),
)

func blockParsers() []util.PrioritizedValue {
	all := parser.DefaultBlockParsers()
	for i, p := range all {
		if p.Value == parser.NewListParser() || p.Value == parser.NewBlockquoteParser() {
			all[i].Value = shallow{p.Value.(parser.BlockParser)}
		}
	}
	return all
}

// shallow limits the depth of lists and quotes. goldmark looks at every open block for every line, so
// that a document of nested lists and quotes would take quadratic time.
type shallow struct{ parser.BlockParser }

const maxDepth = 20

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) >= maxDepth {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// linkReferences removes link definitions from paragraphs, if these are short: goldmark copies the
// rest of the paragraph for each definition.
type linkReferences struct{}

const maxReferences = 1000

// Transform implements parser.ParagraphTransformer.
func (linkReferences) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	if node.Lines().Len() <= maxReferences {
		parser.LinkReferenceParagraphTransformer.Transform(node, reader, pc)
	}
}

// tables makes the lines of a paragraph a block of their own, from the head of a table on. goldmark's
// table extension would also read the cells and fill up short rows: a wide head with many rows below
// would take quadratic memory.
type tables struct{}

// Transform implements parser.ParagraphTransformer.
func (tables) Transform(node *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines := node.Lines()
	for i := 1; i < lines.Len(); i++ {
		head, below := lines.At(i-1), lines.At(i)
		if !isDelimiter(below.Value(reader.Source())) {
			continue
		}
		table := extension.NewTable()
		table.SetPos(head.Start)
		node.Parent().InsertAfter(node.Parent(), node, table)
		lines.SetSliced(0, i-1)
		if i == 1 {
			node.Parent().RemoveChild(node.Parent(), node)
		}
		return
	}
}

// isDelimiter reports whether a line is the delimiter below a table's head.
func isDelimiter(line []byte) bool {
	return bytes.Contains(line, []byte("|")) && bytes.Contains(line, []byte("-")) && len(bytes.Trim(line, "|-: \t\r\n")) == 0
}

// Start returns the first byte of a section in the document.
func (s Section) Start() int { return s.Blocks[0].Start }

// End returns the byte behind the section's last byte.
func (s Section) End() int { return s.Blocks[len(s.Blocks)-1].End }

// Sections are the sections of a document, in order.
type Sections []Section

// ReadSections reads a document; each section has at least one block.
func ReadSections(text string) Sections {
	var all Sections
	var open []int // the headings above the next section
	for _, b := range blocks(text) {
		if b.Kind != Heading {
			if len(all) == 0 {
				all = append(all, Section{Parent: -1})
			}
			last := &all[len(all)-1]
			last.Blocks = append(last.Blocks, b)
			continue
		}
		if len(all) == 1 && all[0].level == 0 { // there are only blocks before the first heading
			all[0].Title, all[0].level = b.title, b.level
			all[0].Blocks = append(all[0].Blocks, b)
			open = append(open, 0)
			continue
		}
		for len(open) > 0 && all[open[len(open)-1]].level >= b.level {
			open = open[:len(open)-1]
		}
		s := Section{Title: b.title, level: b.level, Parent: -1, Blocks: []Block{b}}
		if len(open) > 0 {
			s.Parent = open[len(open)-1]
		}
		open = append(open, len(all))
		all = append(all, s)
	}
	return all
}

// Path returns the titles from the top down to a section.
func (s Sections) Path(i int) []string {
	var titles []string
	for ; i >= 0; i = s[i].Parent {
		if t := s[i].Title; t != "" {
			titles = append(titles, t)
		}
	}
	slices.Reverse(titles)
	return titles
}

// At returns the titles from the top down to the section with a byte.
func (s Sections) At(at int) []string {
	return s.Path(sort.Search(len(s), func(i int) bool { return s[i].Start() > at }) - 1)
}
