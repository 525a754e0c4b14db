package section

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// commonMark reads blocks and no inline marks.
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

// shallow reads lists and quotes up to a depth. goldmark looks at every open block for
// every line, so that a document of nothing else would take time by its square.
type shallow struct{ parser.BlockParser }

const maxDepth = 20

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) >= maxDepth {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// linkReferences takes definitions of links out of paragraphs, where these are short:
// goldmark copies the rest of the paragraph for each.
type linkReferences struct{}

const maxReferences = 1000

// Transform implements parser.ParagraphTransformer.
func (linkReferences) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	if node.Lines().Len() <= maxReferences {
		parser.LinkReferenceParagraphTransformer.Transform(node, reader, pc)
	}
}

// tables makes the lines of a paragraph from the head of a table on a block of their
// own. goldmark's table extension would read the cells as well, and fill up short rows:
// a wide head with many rows below would take memory by the document's square.
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

// isDelimiter reports whether a line is the one below a table's head.
func isDelimiter(line []byte) bool {
	return bytes.Contains(line, []byte("|")) && bytes.Contains(line, []byte("-")) && len(bytes.Trim(line, "|-: \t\r\n")) == 0
}
