package document

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file reads e-books (EPUB 2 and 3): zip files of web pages in the order of a spine. Each page becomes Markdown. One
// without a heading gets its name in the book's table of contents, which is left out itself. Encrypted books are an error.

// EPUB reads an e-book. It is an ApartReader.
func EPUB(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	a, err := openArchive("EPUB", raw, most, stop)
	if err != nil {
		return "", "", err
	}
	b := book{pages: map[string]string{}, names: map[string]string{}}
	err = cmp.Or(a.read("META-INF/encryption.xml", &b), a.read("META-INF/container.xml", &b))
	b.folder = path.Dir(b.root)
	switch err = cmp.Or(err, a.read(b.root, &b)); {
	case b.encrypted:
		return "", "", errors.New("its EPUB is encrypted (DRM); get it without, or leave it out with exclude")
	case err != nil:
		return "", "", err
	case a.root != "package":
		return "", "", errNot("EPUB", "an e-book")
	}
	for _, part := range []string{b.contents, b.ncx} {
		b.folder = path.Dir(part)
		_ = a.read(part, &b) // without names of pages, the book is still a book
	}
	var out strings.Builder
	for _, id := range b.spine {
		if part := b.pages[id]; part != "" && err == nil {
			err = a.page(part, b.names[part], &out)
		}
	}
	return strings.TrimRight(strings.ToValidUTF8(out.String(), "\uFFFD"), "\n") + "\n", OneLine(b.title), err
}

// page writes a page of an e-book.
func (a *archive) page(part, name string, out *strings.Builder) error {
	if a.parts[strings.ToLower(part)] == nil {
		return fmt.Errorf("its EPUB cannot be read: %s is missing%s", part, advice)
	}
	return a.open(part, func(in io.Reader) error {
		raw, err := io.ReadAll(io.LimitReader(in, a.most+1))
		if int64(max(len(raw), out.Len())) > a.most || time.Now().After(a.stop) {
			return errTooLong
		}
		text, wrong := decode(raw)
		if err = cmp.Or(err, wrong); err == nil {
			text, _, err = HTML(closed.ReplaceAllString(text, "<$1$2></$1>"), true)
		}
		if name != "" && text != "" && headingOf(text) == "" {
			text = Heading(1, name) + "\n\n" + text
		}
		out.WriteString(text + "\n")
		return err
	})
}

// closed matches elements that XML closes at once. HTML would read on to an end tag.
var closed = regexp.MustCompile(`<([A-Za-z][\w:.-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)/>`)

// book reads the parts of an e-book that say which pages it has. They use each name for one thing.
type book struct {
	encrypted          bool
	title              string
	root, folder       string            // the package document, which lists the pages; folder of the part that is read
	spine              []string          // ids of pages
	pages, names       map[string]string // parts of pages by id; their names in a table of contents by part
	contents, ncx      string            // parts with the table of contents: a page, and that of EPUB 2
	toc                bool              // inside the table of contents of a page that has other lists, too
	entryName, entryTo string
	to                 *string // where text goes; nil: nowhere
}

// obfuscations are algorithms that hide fonts, and no text.
var obfuscations = []string{"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}

func (b *book) start(name string, e xml.StartElement) {
	switch name {
	case "EncryptionMethod":
		b.encrypted = b.encrypted || !slices.Contains(obfuscations, attr(e, "Algorithm"))
	case "rootfile":
		b.root = cmp.Or(b.root, attr(e, "full-path"))
	case "title":
		if strings.Contains(e.Name.Space, "purl.org/dc/") && b.title == "" {
			b.to = &b.title
		}
	case "item":
		part, kind := b.part(attr(e, "href")), attr(e, "media-type")
		switch {
		case slices.Contains(strings.Fields(attr(e, "properties")), "nav"):
			b.contents = part
		case strings.Contains(kind, "ncx"):
			b.ncx = part
		case strings.Contains(kind, "html") && len(b.pages) < maxStyles:
			b.pages[attr(e, "id")] = part
		}
	case "itemref":
		b.spine = append(b.spine, attr(e, "idref"))
	case "nav":
		b.toc = attr(e, "type") == "toc"
	case "a", "navPoint":
		b.entryName, b.entryTo, b.to = "", attr(e, "href"), &b.entryName
	case "content": // of a navPoint, after its name
		b.entry(attr(e, "src"))
	}
}

func (b *book) end(name string) {
	if name == "a" && b.toc {
		b.entry(b.entryTo)
	}
	if name == "a" || name == "navLabel" || name == "title" {
		b.to = nil
	}
}

func (b *book) text(text string) {
	if b.to != nil && len(*b.to) < longestTitle {
		*b.to += text
	}
}

func (*book) size() int { return 0 }

// entry notes the name of a page; the first one stays.
func (b *book) entry(href string) {
	if part := b.part(href); b.names[part] == "" && len(b.names) < maxStyles {
		b.names[part] = OneLine(b.entryName)
	}
}

// part returns the part that a reference names.
func (b *book) part(href string) string {
	if u, err := url.Parse(href); err == nil {
		href = u.Path
	}
	return strings.TrimPrefix(path.Join("/", b.folder, href), "/")
}
