package html

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/racflow/racflow/engine/document/markdown"
)

// table adds rows of cells, the first row as the header.
func (p *page) table(n *html.Node) {
	p.end(2)
	var rows func(*html.Node)
	first := true
	rows = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.DataAtom {
			case atom.Caption:
				p.words(oneLine(c))
				p.end(2)
			case atom.Tr:
				var cells []string
				for cell := c.FirstChild; cell != nil; cell = cell.NextSibling {
					if (cell.DataAtom == atom.Td || cell.DataAtom == atom.Th) && !hidden(cell) {
						cells = append(cells, oneLine(cell))
					}
				}
				if strings.Join(cells, "") == "" {
					continue
				}
				p.end(1)
				p.write(markdown.Row(cells))
				if first {
					p.end(1)
					p.write(markdown.Rule(len(cells)))
				}
				first = false
			default:
				rows(c)
			}
		}
	}
	rows(n)
	p.end(2)
}

// tabular reports whether a table holds data rather than the layout of a page.
func tabular(table *html.Node) bool {
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Table, atom.Pre, atom.Ul, atom.Ol, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			return false
		}
	}
	return true
}
