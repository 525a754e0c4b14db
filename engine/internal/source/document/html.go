package document

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// This file turns the visible text of a web page into Markdown. Headings, lists, tables and code keep their structure;
// scripts, styles and hidden elements are omitted.
//
// It follows no link and reads no other file. Time and memory are linear in the length of the page;
// nesting beyond the parser's limit is an error.

// oneLine returns the visible text of an element as one line, and counts what it skips.
func oneLine(n *html.Node, unread Unread) string {
	p := htmlPage{unread: unread}
	p.children(n)
	return OneLine(p.out.String())
}

// hides matches a style that hides an element.
var hides = regexp.MustCompile(`(?i)(display *: *none|visibility *: *hidden)`)

func hidden(n *html.Node) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
		return a.Key == "hidden" || a.Key == "style" && hides.MatchString(a.Val)
	})
}

// textOf returns the whole text of an element in its original spacing.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
		if d.DataAtom == atom.Br {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// HTML returns the visible text of a page as Markdown, and its title; empty: none. Without all, the text is the
// readable part of the page. HTML counts the parts of this text that it does not read.
func HTML(text string, all bool, unread Unread) (written, title string, err error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return "", "", fmt.Errorf("its HTML cannot be read: %w", err)
	}
	p := htmlPage{unread: unread, spare: len(text)}
	parts := []*html.Node{root}
	if !all {
		parts, p.left = readable(root)
	}
	for _, n := range parts {
		p.end(2)
		p.walk(n)
	}
	written = p.out.String()
	if written != "" {
		written += "\n"
	}
	return written, titleOf(root), nil
}

// htmlPage collects the text of a page.
type htmlPage struct {
	out    strings.Builder
	breaks int                 // line ends before the next text
	space  bool                // a space comes before the next text
	mark   string              // of a heading or list item without text so far
	left   map[*html.Node]bool // elements to omit
	unread Unread
	spare  int // bytes of cells that may still be repeated
}

// unseen elements are not displayed, or contain no text.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Template: true, atom.Noscript: true, atom.Iframe: true, atom.Object: true, atom.Embed: true,
	atom.Svg: true, atom.Math: true, atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Select: true, atom.Datalist: true,
	atom.Noframes: true, atom.Noembed: true,
}

// unreadHTML names elements that are displayed but not read. A diagram counts if it has text.
var unreadHTML = map[atom.Atom]string{atom.Iframe: "embedded page", atom.Object: "embedded page", atom.Embed: "embedded page", atom.Svg: "diagram", atom.Math: "formula"}

// blocks gives the number of line ends before and after an element.
var blocks = map[atom.Atom]int{
	atom.P: 2, atom.Blockquote: 2, atom.Ul: 2, atom.Ol: 2, atom.Dl: 2, atom.Table: 2, atom.Figure: 2, atom.Section: 2, atom.Article: 2,
	atom.Header: 2, atom.Footer: 2, atom.Main: 2, atom.Aside: 2, atom.Nav: 2, atom.Form: 2, atom.Fieldset: 2, atom.Details: 2, atom.Hr: 2,
	atom.Div: 1, atom.Address: 1, atom.Dt: 1, atom.Dd: 1, atom.Summary: 1, atom.Figcaption: 1, atom.Tr: 1, atom.Li: 1, atom.Caption: 1, atom.Option: 1,
}

var levels = map[atom.Atom]string{atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### "}

func (p *htmlPage) walk(n *html.Node) {
	if n.Type == html.TextNode {
		p.words(n.Data)
		return
	}
	if n.Type == html.ElementNode {
		switch {
		case n.DataAtom == atom.Title || hidden(n) || p.left[n]:
			return
		case unseen[n.DataAtom]:
			if kind := unreadHTML[n.DataAtom]; kind != "" && (kind != "diagram" || strings.TrimSpace(textOf(n)) != "") {
				p.unread[kind]++
			}
			return
		case n.DataAtom == atom.Br:
			p.end(1)
			return
		case n.DataAtom == atom.Pre:
			p.code(textOf(n))
			return
		case n.DataAtom == atom.Table && tabular(n) && p.table(n):
			return
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
			p.space = true
		case levels[n.DataAtom] != "":
			p.end(2)
			p.mark = levels[n.DataAtom]
			p.words(oneLine(n, p.unread))
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

func (p *htmlPage) children(n *html.Node) {
	for c := range n.ChildNodes() {
		p.walk(c)
	}
}

// end asks for line ends before the next text, but not between the mark of a list item and its
// text.
func (p *htmlPage) end(lines int) {
	if p.mark == "" {
		p.breaks = max(p.breaks, lines)
	}
}

// words adds text, each run of white space as one space.
func (p *htmlPage) words(text string) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		p.space = p.space || text != ""
		return
	}
	p.space = p.space || strings.TrimLeft(text, " \t\r\n\f") != text
	p.write(strings.Join(fields, " "))
	p.space = strings.TrimRight(text, " \t\r\n\f") != text
}

func (p *htmlPage) write(text string) {
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

// code adds text as fenced code.
func (p *htmlPage) code(text string) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	p.end(2)
	p.write(fence(text, ""))
	p.end(2)
}

// Limits of the heuristics.
const (
	fewWords  = 10 // a part of a page with fewer words does not count
	manyLinks = 3  // fewest links of a list of links
	linked    = 2.0 / 3
	third     = 1.0 / 3
)

// readable returns the parts of a page that are its content, and the elements in them to omit. If elements mark the
// main part (main, article), that part is the content. In other pages it removes the surroundings: first by elements
// and roles (navigation, header, footer, aside, dialogs, notices of cookies), then lists whose words are mostly links.
// A step that would leave too little is undone.
//
// Link density as a sign of boilerplate comes from Kohlschütter, Fankhauser and Nejdl, "Boilerplate Detection using
// Shallow Text Features" (WSDM 2010). Their other sign, short texts, is not used, since here short lists, tables and
// headings are content.
func readable(root *html.Node) (parts []*html.Node, left map[*html.Node]bool) {
	r := reading{words: map[*html.Node]count{}, left: map[*html.Node]bool{}}
	total := r.count(root, false)
	r.around(root, total.words, false)
	rest := r.rest(root)
	if rest < fewWords && rest < total.words {
		return []*html.Node{root}, nil
	}
	for _, is := range []func(*html.Node) bool{isMain, isArticle} {
		var mains []*html.Node
		words := 0
		r.find(root, is, func(n *html.Node) {
			mains = append(mains, n)
			words += r.rest(n)
		})
		if words >= fewWords && float64(words) >= third*float64(rest) {
			return mains, r.left
		}
	}
	lists := r.lists(root, nil)
	for _, n := range lists {
		r.left[n] = true
	}
	if float64(r.rest(root)) < third*float64(rest) { // a page of links
		for _, n := range lists {
			delete(r.left, n)
		}
	}
	return []*html.Node{root}, r.left
}

// count counts the visible words of an element, how many of them are in links, and the links.
type count struct{ words, linked, links int }

type reading struct {
	words map[*html.Node]count
	left  map[*html.Node]bool
}

// count counts the words of an element and its descendants.
func (r *reading) count(n *html.Node, link bool) (c count) {
	switch {
	case n.Type == html.TextNode:
		for range strings.FieldsSeq(n.Data) {
			c.words++
		}
		if link {
			c.linked = c.words
		}
		return c
	case unseen[n.DataAtom] || n.DataAtom == atom.Title || n.Type == html.ElementNode && hidden(n):
		return c
	case n.DataAtom == atom.A:
		link = true
		c.links = 1
	}
	for child := range n.ChildNodes() {
		of := r.count(child, link)
		c.words, c.linked, c.links = c.words+of.words, c.linked+of.linked, c.links+of.links
	}
	if c.words > 0 {
		r.words[n] = c
	}
	return c
}

// rest returns how many words of an element remain.
func (r *reading) rest(n *html.Node) int {
	words := r.words[n].words
	if r.left[n] || words == 0 {
		return 0
	}
	for d := range n.ChildNodes() {
		words -= r.words[d].words - r.rest(d)
	}
	return words
}

// around omits elements that declare themselves as surroundings, in a page of total words. In the content, a header may
// hold its title, and an aside a remark.
func (r *reading) around(n *html.Node, total int, content bool) {
	content = content || isMain(n) || isArticle(n)
	out := false
	switch n.DataAtom {
	case atom.Nav, atom.Dialog:
		out = true
	case atom.Header, atom.Footer, atom.Aside:
		out = !content
	}
	switch attribute(n, "role") {
	case "navigation", "search", "dialog", "alertdialog", "menu", "menubar":
		out = true
	case "banner", "contentinfo", "complementary":
		out = !content
	}
	if out || float64(r.words[n].words) < third*float64(total) && isNotice(n) {
		r.left[n] = true
		return
	}
	for c := range n.ChildNodes() {
		r.around(c, total, content)
	}
}

// find calls f with the outermost elements of a kind.
func (r *reading) find(n *html.Node, is func(*html.Node) bool, f func(*html.Node)) {
	if r.left[n] {
		return
	}
	if is(n) && r.words[n].words > 0 {
		f(n)
		return
	}
	for c := range n.ChildNodes() {
		r.find(c, is, f)
	}
}

// lists appends the outermost elements that are lists of links.
func (r *reading) lists(n *html.Node, all []*html.Node) []*html.Node {
	switch c := r.words[n]; {
	case c.links < manyLinks || r.left[n]:
		return all
	case holdsBlocks[n.DataAtom] && float64(c.linked) > linked*float64(c.words):
		return append(all, n)
	}
	for c := range n.ChildNodes() {
		all = r.lists(c, all)
	}
	return all
}

var holdsBlocks = map[atom.Atom]bool{
	atom.Ul: true, atom.Ol: true, atom.Div: true, atom.Section: true, atom.Table: true, atom.Td: true, atom.Tr: true, atom.Dl: true, atom.Center: true, atom.Form: true,
}

func isMain(n *html.Node) bool { return n.DataAtom == atom.Main || attribute(n, "role") == "main" }

func isArticle(n *html.Node) bool { return n.DataAtom == atom.Article }

// isNotice reports whether the name of an element marks a cookie notice.
func isNotice(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.Section, atom.Aside, atom.Form, atom.P, atom.Span:
	default:
		return false
	}
	return notices.MatchString(attribute(n, "id") + " " + attribute(n, "class"))
}

var notices = regexp.MustCompile("(?i)cookie|consent|gdpr")

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// titleOf returns the title in the head of a page.
func titleOf(root *html.Node) string {
	for n := range root.Descendants() {
		if n.DataAtom == atom.Title && n.Namespace == "" {
			return OneLine(textOf(n))
		}
	}
	return ""
}

// table adds a table with its first row as the header. It returns false for a single row or column, which is a frame
// around a text.
func (p *htmlPage) table(n *html.Node) bool {
	g, caption, unread := grid{spare: &p.spare}, "", Unread{}
	var rows func(*html.Node)
	rows = func(n *html.Node) {
		for c := range n.ChildNodes() {
			switch {
			case c.DataAtom == atom.Caption:
				caption = oneLine(c, unread)
			case c.DataAtom == atom.Tr && !hidden(c):
				var cells []gridCell
				for cell := range c.ChildNodes() {
					if (cell.DataAtom == atom.Td || cell.DataAtom == atom.Th) && !hidden(cell) {
						cells = append(cells, gridCell{oneLine(cell, unread), spanOf(cell, "colspan"), spanOf(cell, "rowspan")})
					}
				}
				g.row(cells)
			case c.DataAtom != atom.Tr:
				rows(c)
			}
		}
	}
	rows(n)
	if !g.tabular() {
		return false
	}
	p.end(2)
	p.words(caption)
	p.end(2)
	p.write(strings.TrimSuffix(table(g.rows), "\n"))
	p.end(2)
	p.unread.Add(unread)
	return true
}

// spanOf returns how many columns or rows a cell takes; a rowspan of 0 reaches the end of the table.
func spanOf(cell *html.Node, key string) int {
	value := strings.TrimSpace(attribute(cell, key))
	if n, err := strconv.Atoi(value); value == "0" && key == "rowspan" || err == nil && n > 0 {
		return cmp.Or(n, maxRows)
	}
	return 1
}

// tabular reports whether a table may hold data, not the layout of a page. Cells may contain lists if the table has
// headers.
func tabular(table *html.Node) bool {
	lists, headers := false, false
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Table, atom.Pre, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			return false
		case atom.Ul, atom.Ol:
			lists = true
		case atom.Th:
			headers = true
		}
	}
	return headers || !lists
}
