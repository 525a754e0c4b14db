package html

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/racflow/racflow/engine/document/markdown"
)

// Markdown returns the visible text of a page as Markdown, and its title; empty: it has
// none.
// Without all it is the readable part of the page.
func Markdown(text string, all bool) (written, title string, err error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return "", "", fmt.Errorf("its HTML cannot be read: %w", err)
	}
	var p page
	parts := []*html.Node{root}
	if !all {
		parts, p.left = readable(root)
		p.title = titleOf(root)
	}
	for _, n := range parts {
		p.end(2)
		p.walk(n)
	}
	written = p.out.String()
	if written != "" {
		written += "\n"
	}
	return written, p.title, nil
}

// page collects the text of a page.
type page struct {
	out    strings.Builder
	breaks int    // line ends that stand before the next text
	space  bool   // a space does
	mark   string // of a heading or list item whose text has not come yet
	title  string
	left   map[*html.Node]bool // elements that are left out
}

// unseen elements are not displayed, or hold no text.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Template: true, atom.Noscript: true, atom.Iframe: true, atom.Object: true, atom.Embed: true,
	atom.Svg: true, atom.Math: true, atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Select: true, atom.Datalist: true,
	atom.Noframes: true, atom.Noembed: true,
}

// blocks is how many line ends stand before and after an element.
var blocks = map[atom.Atom]int{
	atom.P: 2, atom.Blockquote: 2, atom.Ul: 2, atom.Ol: 2, atom.Dl: 2, atom.Table: 2, atom.Figure: 2, atom.Section: 2, atom.Article: 2,
	atom.Header: 2, atom.Footer: 2, atom.Main: 2, atom.Aside: 2, atom.Nav: 2, atom.Form: 2, atom.Fieldset: 2, atom.Details: 2, atom.Hr: 2,
	atom.Div: 1, atom.Address: 1, atom.Dt: 1, atom.Dd: 1, atom.Summary: 1, atom.Figcaption: 1, atom.Tr: 1, atom.Li: 1, atom.Caption: 1, atom.Option: 1,
}

var levels = map[atom.Atom]string{atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### "}

func (p *page) walk(n *html.Node) {
	if n.Type == html.TextNode {
		p.words(n.Data)
		return
	}
	if n.Type == html.ElementNode {
		switch {
		case n.DataAtom == atom.Title && p.title == "":
			p.title = strings.Join(strings.Fields(textOf(n)), " ")
			return
		case n.DataAtom == atom.Title || unseen[n.DataAtom] || hidden(n) || p.left[n]:
			return
		case n.DataAtom == atom.Br:
			p.end(1)
			return
		case n.DataAtom == atom.Pre:
			p.code(textOf(n))
			return
		case n.DataAtom == atom.Table && tabular(n):
			p.table(n)
			return
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
			p.space = true
		case levels[n.DataAtom] != "":
			p.end(2)
			p.mark = levels[n.DataAtom]
			p.words(oneLine(n))
			p.mark = ""
			p.end(2)
			return
		case n.DataAtom == atom.Li:
			p.end(1)
			p.mark = "- "
		}
	}
	p.end(blocks[n.DataAtom])
	p.children(n)
	if n.DataAtom == atom.Li {
		p.mark = ""
	}
	p.end(blocks[n.DataAtom])
}

func (p *page) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		p.walk(c)
	}
}

// end asks for line ends before the next text, but not between the mark of a list item
// and its text.
func (p *page) end(lines int) {
	if p.mark == "" {
		p.breaks = max(p.breaks, lines)
	}
}

// words adds text, each piece of white space as one space.
func (p *page) words(text string) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		p.space = p.space || text != ""
		return
	}
	p.space = p.space || strings.TrimLeft(text, " \t\r\n\f") != text
	p.write(strings.Join(fields, " "))
	p.space = strings.TrimRight(text, " \t\r\n\f") != text
}

func (p *page) write(text string) {
	switch {
	case p.out.Len() == 0:
	case p.breaks > 0:
		p.out.WriteString(strings.Repeat("\n", p.breaks))
	case p.space:
		p.out.WriteByte(' ')
	}
	p.out.WriteString(p.mark)
	p.out.WriteString(text)
	p.breaks, p.space, p.mark = 0, false, ""
}

// code adds lines as they are.
func (p *page) code(text string) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	p.end(2)
	p.write(markdown.Fence(text, ""))
	p.end(2)
}
