package document

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file reads e-books (EPUB 2 and 3): zip files of web pages in the order of a spine. Each page becomes Markdown. A
// page without a heading gets its name from the book's table of contents; the table itself is omitted. Encrypted books
// are an error.

// EPUB reads an e-book. It is an apartReader.
func EPUB(raw []byte, most int64, stop time.Time, unread Unread) (text, title string, err error) {
	a, err := openArchive("EPUB", raw, most, stop, unread)
	if err != nil {
		return "", "", err
	}
	encryption, err := a.read("META-INF/encryption.xml")
	for method := range encryption.all("EncryptionMethod") {
		if !slices.Contains(obfuscations, method.attr("Algorithm")) {
			return "", "", errors.New("its EPUB is encrypted (DRM); get it without, or leave it out with exclude")
		}
	}
	container, wrong := a.read("META-INF/container.xml")
	main := container.first("rootfile").attr("full-path")
	root, missing := a.read(main)
	if err = cmp.Or(err, wrong, missing); err != nil {
		return "", "", err
	}
	if root == nil || root.name != "package" {
		return "", "", errNot("EPUB", "an e-book")
	}
	pages, names := map[string]string{}, map[string]string{} // parts by id; names in a table of contents by part
	for item := range root.all("item") {
		part, kind := partOf(main, item.attr("href")), item.attr("media-type")
		switch {
		case slices.Contains(strings.Fields(item.attr("properties")), "nav"), strings.Contains(kind, "ncx"):
			if contents, err := a.read(part); err == nil { // without names of pages, the book is still readable
				nameEntries(names, part, contents)
			}
		case strings.Contains(kind, "html"):
			pages[item.attr("id")] = part
		}
	}
	var out strings.Builder
	for item := range root.all("itemref") {
		if part := pages[item.attr("idref")]; part != "" && err == nil {
			err = a.page(part, names[part], &out)
		}
	}
	title = root.first("metadata").first("title").words()
	return strings.TrimRight(strings.ToValidUTF8(out.String(), "\uFFFD"), "\n") + "\n", OneLine(title), err
}

// nameEntries adds the names of pages from a table of contents, in the form of EPUB 3 (links in a nav) or 2 (points). A
// page keeps its first name.
func nameEntries(names map[string]string, part string, n *node) {
	name := func(href, text string) {
		if to := partOf(part, href); names[to] == "" {
			names[to] = OneLine(text)
		}
	}
	for nav := range n.all("nav") {
		for link := range nav.all("a") {
			if nav.attr("type") == "toc" {
				name(link.attr("href"), link.words())
			}
		}
	}
	for point := range n.all("navPoint") {
		name(point.own("content").attr("src"), point.own("navLabel").words())
		nameEntries(names, part, point)
	}
}

// page writes a page of an e-book.
func (a *archive) page(part, name string, out *strings.Builder) error {
	if a.parts[strings.ToLower(part)] == nil {
		return fmt.Errorf("its EPUB cannot be read: %s is missing%s", part, advice)
	}
	raw, err := a.content(part)
	if err != nil || int64(out.Len()) > a.most {
		return cmp.Or(err, errTooLong)
	}
	text, err := decode(raw, true)
	if err == nil {
		text, _, err = HTML(closed.ReplaceAllString(text, "<$1$2></$1>"), true, a.unread)
	}
	if name != "" && text != "" && headingOf(text) == "" {
		text = Heading(1, name) + "\n\n" + text
	}
	out.WriteString(text + "\n")
	return a.fault(part, err)
}

// closed matches elements that XML closes immediately. HTML would wait for an end tag.
var closed = regexp.MustCompile(`<([A-Za-z][\w:.-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)/>`)

// obfuscations are algorithms that hide only fonts, not text.
var obfuscations = []string{"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}

// partOf returns the part that a reference in another part names.
func partOf(from, href string) string {
	if u, err := url.Parse(href); err == nil {
		href = u.Path
	}
	return strings.TrimPrefix(path.Join("/", path.Dir(from), href), "/")
}
