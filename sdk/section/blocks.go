package section

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Kind is that of a block.
type Kind uint8

// The kinds of blocks.
const (
	Prose   Kind = iota // paragraphs, quotes and rules
	Lines               // tables, code, lists and HTML: what is cut at lines
	Heading             // ATX (# Title) or setext (underlined with === or ---)
	Matter              // front matter
)

// Block is a part of a document with the empty lines behind it: the bytes from
// Start up to End. The blocks of a document follow each other without a gap.
type Block struct {
	Kind       Kind
	Start, End int
	Rows       int    // of a table: the byte at which the rows below its header begin; 0: it is none
	title      string // of a heading
	level      int
}

// maxTitle bounds titles, which become metadata, in bytes.
const maxTitle = 200

const byteOrderMark = "\uFEFF"

// blocks reads a document.
func blocks(document string) []Block {
	var all []Block
	front := frontMatter(document)
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
			continue // goldmark may put a heading behind a table that the same paragraph became
		}
		switch n := n.(type) {
		case *ast.Heading:
			b.Kind, b.title, b.level = Heading, titleOf(n, source), n.Level
		case *extension.Table:
			b.Kind, b.Rows = Lines, lineAfter(document, lineAfter(document, b.Start))
		case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.List, *ast.HTMLBlock:
			b.Kind = Lines
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

// lineAfter returns where the line behind the one at a byte begins.
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

// frontMatter returns where the front matter of a document ends; 0: it has none.
func frontMatter(document string) int {
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
