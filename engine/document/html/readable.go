package html

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of the heuristics.
const (
	fewWords  = 10 // a part of a page with fewer says nothing
	manyLinks = 3  // a list of links has at least so many
	linked    = 2.0 / 3
	third     = 1.0 / 3
)

// readable returns the parts of a page that are its content, and the elements in them that are
// not. Where elements say which part is the main one (main, article), that is it. Of
// other pages what stands around the content is left out: first what its elements and roles
// say (navigation, header, footer, aside, dialogs, notices of cookies), then lists whose words
// are links for the most part. Link density as the sign of what is no content is that of
// Kohlschütter, Fankhauser and Nejdl, "Boilerplate Detection using Shallow Text Features"
// (WSDM 2010); its sign of short texts is not taken, since lists, tables and headings
// are short and content here. What would leave too little is left undone.
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

// count is how many words an element shows, those of them that are links, and the links.
type count struct{ words, linked, links int }

type reading struct {
	words map[*html.Node]count
	left  map[*html.Node]bool
}

// count counts the words of an element and of all in it.
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
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		of := r.count(child, link)
		c.words, c.linked, c.links = c.words+of.words, c.linked+of.linked, c.links+of.links
	}
	if n.Type != html.TextNode && c.words > 0 {
		r.words[n] = c
	}
	return c
}

// rest is how many words of an element are not left out.
func (r *reading) rest(n *html.Node) int {
	words := r.words[n].words
	if r.left[n] || words == 0 {
		return 0
	}
	for d := n.FirstChild; d != nil; d = d.NextSibling {
		if d.Type == html.ElementNode {
			words -= r.words[d].words - r.rest(d)
		}
	}
	return words
}

// around leaves out what says of itself that it stands around the content of a page of so many
// words. In the content a header holds its title, and an aside a remark.
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
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			r.around(c, total, content)
		}
	}
}

// find calls f with the outermost elements that are of a kind.
func (r *reading) find(n *html.Node, is func(*html.Node) bool, f func(*html.Node)) {
	if r.left[n] {
		return
	}
	if is(n) && r.words[n].words > 0 {
		f(n)
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			r.find(c, is, f)
		}
	}
}

// lists adds the outermost elements that are lists of links.
func (r *reading) lists(n *html.Node, all []*html.Node) []*html.Node {
	switch c := r.words[n]; {
	case c.links < manyLinks || r.left[n]:
		return all
	case holdsBlocks[n.DataAtom] && float64(c.linked) > linked*float64(c.words):
		return append(all, n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			all = r.lists(c, all)
		}
	}
	return all
}

var holdsBlocks = map[atom.Atom]bool{
	atom.Ul: true, atom.Ol: true, atom.Div: true, atom.Section: true, atom.Table: true, atom.Td: true, atom.Tr: true, atom.Dl: true, atom.Center: true, atom.Form: true,
}

func isMain(n *html.Node) bool {
	return n.DataAtom == atom.Main || attribute(n, "role") == "main"
}

func isArticle(n *html.Node) bool { return n.DataAtom == atom.Article }

// isNotice reports whether an element is a notice of cookies by its name.
func isNotice(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.Section, atom.Aside, atom.Form, atom.P, atom.Span:
	default:
		return false
	}
	name := strings.ToLower(attribute(n, "id") + " " + attribute(n, "class"))
	return strings.Contains(name, "cookie") || strings.Contains(name, "consent") || strings.Contains(name, "gdpr")
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// titleOf is the title that the head of a page gives.
func titleOf(root *html.Node) string {
	for n := range root.Descendants() {
		if n.DataAtom == atom.Title && n.Namespace == "" {
			return strings.Join(strings.Fields(textOf(n)), " ")
		}
	}
	return ""
}
