package document

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

// This file turns office files into Markdown: Word documents (docx), slides (pptx) and workbooks
// (xlsx).
//
// A Word document yields headings, lists with their numbers, tables, and footnotes and endnotes at the end. Of tracked
// changes it keeps the inserted text, not the deleted one. Headers, footers, comments and the table of contents are
// omitted. Each slide has a heading with its number and title, then its text, tables and speaker notes.
//
// Each sheet has its name as a heading, and its rows as a table. The table's header is the first row with more than one
// cell. Cells have their values, with the units that they show. Hidden text, slides and sheets are omitted, and so are
// pictures.
//
// docx and pptx are zip files of XML, as epub is (epub.go). Each part is read as a tree, with limits on unpacked bytes,
// elements and nesting; custom entities are an error. Package rows reads xlsx. Call the readers through apart.go.

// Limits of a file.
const (
	maxUnpacked = 256 << 20 // unpacked bytes of all parts read
	maxElements = 2_000_000 // about 2,000 pages
	maxDepth    = 500
)

const advice = "; save it anew in its program, or leave it out with exclude"

// archive is an office file or an e-book: a zip file of parts.
type archive struct {
	kind     string // "DOCX", "PPTX", "EPUB"
	parts    map[string]*zip.File
	left     int64 // bytes that may still be unpacked
	elements int
	length   int64 // of the texts in them
	most     int64
	stop     time.Time
	unread   Unread // counts what is not read
}

func openArchive(kind string, raw []byte, most int64, stop time.Time, unread Unread) (*archive, error) {
	if bytes.HasPrefix(raw, []byte("\xd0\xcf\x11\xe0")) {
		return nil, fmt.Errorf("its %s is encrypted, or in the format of before 2007; save it without a password as .%s", kind, strings.ToLower(kind))
	}
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, fmt.Errorf("its %s cannot be read: %w%s", kind, err, advice)
	}
	a := &archive{kind: kind, parts: make(map[string]*zip.File, len(r.File)), left: maxUnpacked, most: most, stop: stop, unread: unread}
	for _, f := range r.File {
		name := strings.ToLower(path.Clean(strings.ReplaceAll(strings.TrimPrefix(f.Name, "/"), `\`, "/")))
		if a.parts[name] == nil {
			a.parts[name] = f
		}
	}
	return a, nil
}

// node is an element of a part, or a text in the part, which has no name. All methods treat nil as an empty element.
type node struct {
	name  string // local name: all parts of a format use a name for the same thing
	attrs []xml.Attr
	text  string
	in    []*node
}

// attr returns the value of an attribute by its local name; empty: there is none.
func (n *node) attr(name string) string {
	if n != nil {
		for _, a := range n.attrs {
			if a.Name.Local == name {
				return a.Value
			}
		}
	}
	return ""
}

// all yields the outermost elements of a name in an element.
func (n *node) all(name string) iter.Seq[*node] {
	return func(yield func(*node) bool) { n.each(name, yield) }
}

func (n *node) each(name string, yield func(*node) bool) bool {
	if n == nil {
		return true
	}
	for _, inner := range n.in {
		if inner.name == name && !yield(inner) || inner.name != name && !inner.each(name, yield) {
			return false
		}
	}
	return true
}

// first returns the first element of a name in an element; nil: there is none.
func (n *node) first(name string) *node {
	for found := range n.all(name) {
		return found
	}
	return nil
}

// own returns the first element of a name directly in an element; nil: there is none.
func (n *node) own(name string) *node {
	if n != nil {
		for _, inner := range n.in {
			if inner.name == name {
				return inner
			}
		}
	}
	return nil
}

// element returns the first element directly in an element.
func (n *node) element() *node {
	i := slices.IndexFunc(n.in, func(inner *node) bool { return inner.name != "" })
	if i < 0 {
		return nil
	}
	return n.in[i]
}

// val returns the val of an element directly in another.
func (n *node) val(name string) string { return n.own(name).attr("val") }

// words returns the text in an element.
func (n *node) words() string {
	var b strings.Builder
	for text := range n.all("") {
		b.WriteString(text.text)
	}
	return b.String()
}

// read returns the outermost element of a part; nil: the part is missing, which is no error.
func (a *archive) read(part string) (root *node, err error) {
	err = a.open(part, func(in io.Reader) error {
		root, err = a.tree(in)
		return err
	})
	return root, err
}

// open calls f with the content of a part, if there is one, within the limits.
func (a *archive) open(part string, f func(io.Reader) error) error {
	file := a.parts[strings.ToLower(part)]
	if file == nil {
		return nil
	}
	in, err := file.Open()
	if err == nil {
		defer in.Close() //nolint:errcheck // it was only read
		err = f(&limited{in, &a.left})
	}
	return a.fault(part, err)
}

// fault adds the location of an error.
func (a *archive) fault(part string, err error) error {
	if err == nil || errors.Is(err, errTooLong) {
		return err
	}
	return fmt.Errorf("its %s cannot be read: %s: %w%s", a.kind, part, err, advice)
}

var errTooLong = tooLong("text")

// content returns the bytes of a part, if there is one.
func (a *archive) content(part string) (raw []byte, err error) {
	err = a.open(part, func(in io.Reader) (err error) {
		raw, err = io.ReadAll(io.LimitReader(in, a.most+1))
		if int64(len(raw)) > a.most || time.Now().After(a.stop) {
			return errTooLong
		}
		return err
	})
	return raw, err
}

// diagram returns the texts of the points of a diagram (SmartArt).
func (a *archive) diagram(part string) (points []string, err error) {
	root, err := a.read(part)
	for point := range root.all("pt") {
		for p := range point.all("p") {
			if text := OneLine(slideText(p)); text != "" {
				points = append(points, text)
			}
		}
	}
	return points, err
}

// unreadParts names the parts of office files that are not read.
var unreadParts = map[string]*regexp.Regexp{
	"attachment":  regexp.MustCompile(`^(word|ppt|xl)/embeddings/`),
	"chart":       regexp.MustCompile(`^(word|ppt|xl)/charts/chart(ex)?\d*\.xml$`),
	"diagram":     regexp.MustCompile(`^xl/diagrams/data\d*\.xml$`),
	"part in RTF": regexp.MustCompile(`^word/.*\.rtf$`),
}

// officeUnread counts the parts of an office file that its reader does not read. It ignores the embedded workbook with
// the numbers of a chart in a text or on slides.
func officeUnread(raw []byte, unread Unread) {
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return // the reader reports the error
	}
	for _, f := range r.File {
		for kind, names := range unreadParts {
			if names.MatchString(strings.ToLower(f.Name)) {
				unread[kind]++
			}
		}
	}
	if unread["attachment"] -= unread["chart"]; unread["attachment"] <= 0 {
		delete(unread, "attachment")
	}
	if unread["chart"] == 0 {
		delete(unread, "chart")
	}
}

func (a *archive) tree(in io.Reader) (*node, error) {
	d := xml.NewDecoder(in)
	d.CharsetReader = charset.NewReaderLabel
	open := []*node{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return open[0].element(), nil
		}
		if err != nil {
			return nil, err
		}
		within := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if len(open) > maxDepth {
				return nil, errors.New("it has too many elements in each other")
			}
			if a.elements++; a.elements > maxElements || a.elements%1024 == 0 && time.Now().After(a.stop) {
				return nil, errTooLong
			}
			inner := &node{name: t.Name.Local, attrs: t.Attr}
			within.in, open = append(within.in, inner), append(open, inner)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				a.length += int64(len(t))
			}
			if a.length > a.most {
				return nil, errTooLong
			}
			within.in = append(within.in, &node{text: string(t)})
		}
	}
}

// limited fails if all parts together unpack to more than the limit.
type limited struct {
	in   io.Reader
	left *int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if *l.left -= int64(n); *l.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d MB", maxUnpacked>>20)
	}
	return n, err
}

// relation is a part that another part refers to.
type relation struct{ kind, part string }

// relations returns the parts that a part refers to, by their ids.
func (a *archive) relations(part string) (map[string]relation, error) {
	folder, name := path.Split(part)
	all := map[string]relation{}
	root, err := a.read(folder + "_rels/" + name + ".rels")
	for r := range root.all("Relationship") {
		target := r.attr("Target")
		if !strings.HasPrefix(target, "/") {
			target = path.Join(folder, target)
		}
		if r.attr("TargetMode") != "External" {
			all[r.attr("Id")] = relation{path.Base(r.attr("Type")), strings.TrimPrefix(path.Clean(target), "/")}
		}
	}
	return all, err
}

// related returns the part of a kind; empty: there is none.
func related(to map[string]relation, kind string) string {
	for _, one := range to {
		if one.kind == kind {
			return one.part
		}
	}
	return ""
}

// main returns the part with the file's content: the part in _rels/.rels, otherwise other.
func (a *archive) main(other string) (string, error) {
	to, err := a.relations("") // _rels/.rels
	return cmp.Or(related(to, "officeDocument"), other), err
}

// title returns the title in the file's properties.
func (a *archive) title() string {
	root, err := a.read("docProps/core.xml")
	if err != nil {
		return "" // bad properties are no reason to refuse the file
	}
	return OneLine(root.first("title").words())
}
