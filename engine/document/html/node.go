package html

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// oneLine is the visible text of an element as one line.
func oneLine(n *html.Node) string {
	var p page
	p.title = "none is wanted"
	p.children(n)
	return strings.Join(strings.Fields(p.out.String()), " ")
}

func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// textOf is all text of an element as it is written.
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
