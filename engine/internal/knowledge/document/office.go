package document

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

// This file turns office files into Markdown: Word documents (docx), slides (pptx) and workbooks
// (xlsx).
//
// A Word document yields headings, lists with their numbers, tables, and footnotes and endnotes at
// the end; of tracked changes the inserted text, not the deleted one. Headers, footers, comments
// and the table of contents are left out. Each slide has a heading with its number and title, then
// its text, tables and speaker notes. Each sheet has its name as a heading, and its rows as a table
// whose header is the first row with more than one cell; cells appear in their number format.
// Hidden text, slides and sheets are left out, and so are pictures.
//
// docx and pptx are zip files of XML, as epub is (epub.go). Each part is read in one pass, with limits on unpacked bytes,
// elements and nesting; custom entities are an error. The excelize library reads xlsx. Call the
// readers through apart.go.

// Limits of a file.
const (
	maxUnpacked = 256 << 20 // unpacked bytes of all parts read
	maxElements = 20_000_000
	maxDepth    = 500
)

const advice = "; save it anew in its program, or leave it out with exclude"

// archive is an office file or an e-book: a zip file of parts.
type archive struct {
	kind     string // "DOCX", "PPTX", "EPUB"
	parts    map[string]*zip.File
	left     int64 // bytes that may still be unpacked
	elements int
	root     string // first element of the latest part
	most     int64
	stop     time.Time
}

func openArchive(kind string, raw []byte, most int64, stop time.Time) (*archive, error) {
	if bytes.HasPrefix(raw, []byte("\xd0\xcf\x11\xe0")) {
		return nil, fmt.Errorf("its %s is encrypted, or in the format of before 2007; save it without a password as .%s", kind, strings.ToLower(kind))
	}
	r, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, fmt.Errorf("its %s cannot be read: %w%s", kind, err, advice)
	}
	a := &archive{kind: kind, parts: make(map[string]*zip.File, len(r.File)), left: maxUnpacked, most: most, stop: stop}
	for _, f := range r.File {
		name := strings.ToLower(path.Clean(strings.ReplaceAll(strings.TrimPrefix(f.Name, "/"), `\`, "/")))
		if a.parts[name] == nil {
			a.parts[name] = f
		}
	}
	return a, nil
}

// A handler gets the elements and texts of a part, in order. It knows elements by their local
// names: parts of one format use each name for one thing.
type handler interface {
	start(name string, e xml.StartElement)
	end(name string)
	text(text string)
	size() int // bytes written so far
}

// read calls a handler with a part. A missing part is no error.
func (a *archive) read(part string, h handler) error {
	a.root = ""
	return a.open(part, func(in io.Reader) error { return a.walk(in, h) })
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
	if err == nil || errors.Is(err, errTooLong) {
		return err
	}
	return fmt.Errorf("its %s cannot be read: %s: %w%s", a.kind, part, err, advice)
}

var errTooLong = TooLong("text")

func (a *archive) walk(in io.Reader, h handler) error {
	d := xml.NewDecoder(in)
	d.CharsetReader = charset.NewReaderLabel
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 {
				a.root = t.Name.Local
			}
			if a.elements++; depth > maxDepth || a.elements > maxElements {
				return errors.New("it has too many elements, or too many in each other")
			}
			if a.elements%1024 == 0 && (int64(h.size()) > a.most || time.Now().After(a.stop)) {
				return errTooLong
			}
			h.start(t.Name.Local, t)
		case xml.EndElement:
			depth--
			h.end(t.Name.Local)
		case xml.CharData:
			h.text(string(t))
		}
	}
}

// limited fails when all parts together unpack to more than the limit.
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

// attr returns the value of an attribute by its local name; empty: there is none.
func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// on reports whether a switch element is on: <w:vanish/> is, <w:vanish w:val="0"/> is not.
func on(e xml.StartElement) bool {
	switch attr(e, "val") {
	case "0", "false", "off":
		return false
	}
	return true
}

// relations lists the parts that a part refers to, by their ids.
type relations struct {
	folder string
	to     map[string]relation
}

type relation struct{ kind, part string }

func (a *archive) relations(part string) (relations, error) {
	folder, name := path.Split(part)
	r := relations{folder: folder, to: map[string]relation{}}
	return r, a.read(folder+"_rels/"+name+".rels", r)
}

func (r relations) start(name string, e xml.StartElement) {
	target := attr(e, "Target")
	if name != "Relationship" || attr(e, "TargetMode") == "External" {
		return
	}
	if !strings.HasPrefix(target, "/") {
		target = path.Join(r.folder, target)
	}
	r.to[attr(e, "Id")] = relation{path.Base(attr(e, "Type")), strings.TrimPrefix(path.Clean(target), "/")}
}

func (relations) end(string)  {}
func (relations) text(string) {}
func (relations) size() int   { return 0 }

// of returns the part of a kind; empty: there is none.
func (r relations) of(kind string) string {
	for _, one := range r.to {
		if one.kind == kind {
			return one.part
		}
	}
	return ""
}

// main returns the part with the file's content: the one in _rels/.rels, else other.
func (a *archive) main(other string) (string, error) {
	r, err := a.relations("") // _rels/.rels
	if part := r.of("officeDocument"); part != "" {
		return part, err
	}
	return other, err
}

// title returns the title in the file's properties.
func (a *archive) title() string {
	var t titleReader
	if err := a.read("docProps/core.xml", &t); err != nil {
		return "" // bad properties are no reason to refuse the file
	}
	return strings.Join(strings.Fields(t.title), " ")
}

type titleReader struct {
	title string
	in    bool
}

func (t *titleReader) start(name string, _ xml.StartElement) { t.in = name == "title" }
func (t *titleReader) end(string)                            { t.in = false }
func (t *titleReader) size() int                             { return len(t.title) }
func (t *titleReader) text(text string) {
	if t.in && len(t.title) < 1000 {
		t.title += text
	}
}

// style says what kind of paragraph a style makes.
type style struct {
	name, basedOn string
	level         int    // level of a heading; 0: no heading
	list, depth   string // id and depth of a list; "": no list
}

// styles reads styles.xml.
type styles struct {
	all map[string]*style
	now *style
}

func (s *styles) start(name string, e xml.StartElement) {
	switch value := attr(e, "val"); {
	case name == "style":
		s.now = &style{}
		if len(s.all) < maxStyles {
			s.all[attr(e, "styleId")] = s.now
		}
	case s.now == nil:
	case name == "name":
		s.now.name = strings.ToLower(value)
		if rest, ok := strings.CutPrefix(s.now.name, "heading "); ok {
			s.now.level, _ = strconv.Atoi(rest)
		} else if s.now.name == "title" {
			s.now.level = 1
		}
	case name == "basedOn":
		s.now.basedOn = value
	case name == "outlineLvl" && s.now.level == 0:
		s.now.level = outline(value)
	case name == "numId":
		s.now.list = value
	case name == "ilvl":
		s.now.depth = value
	}
}

// maxStyles is how many styles and lists are remembered.
const maxStyles = 10_000

// outline turns an outline level, from 0, into a heading level, from 1. Outline level 9 is text.
func outline(value string) int {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
		return n + 1
	}
	return 0
}

func (s *styles) end(name string) {
	if name == "style" {
		s.now = nil
	}
}
func (*styles) text(string) {}
func (*styles) size() int   { return 0 }

// of returns a style with the properties that it inherits.
func (s *styles) of(id string) style {
	var found style
	for range 10 { // inheritance may be circular
		one := s.all[id]
		if one == nil {
			break
		}
		if found.name == "" {
			found.name = one.name
		}
		if found.level == 0 {
			found.level = one.level
		}
		if found.list == "" {
			found.list, found.depth = one.list, one.depth
		}
		id = one.basedOn
	}
	return found
}

// lists reads numbering.xml: which levels of which lists have numbers.
type lists struct {
	formats map[string]string // number format by "abstract level", or by "list level" for an override
	lists   map[string]string // id -> abstract
	last    map[string]int    // latest number by "list level"
	now     string            // id of the current abstract or list
	level   string
}

func (l *lists) start(name string, e xml.StartElement) {
	if len(l.formats)+len(l.lists) > maxStyles {
		return
	}
	switch name {
	case "abstractNum":
		l.now = attr(e, "abstractNumId")
	case "lvl":
		l.level = attr(e, "ilvl")
	case "numFmt":
		l.formats[l.now+" "+l.level] = attr(e, "val")
	case "num":
		l.now = attr(e, "numId")
	case "abstractNumId":
		l.lists[l.now] = attr(e, "val")
	}
}

func (*lists) end(string)  {}
func (*lists) text(string) {}
func (*lists) size() int   { return 0 }

// mark returns the beginning of the next item of a list.
func (l *lists) mark(list, level string) string {
	depth, _ := strconv.Atoi(level)
	depth = min(max(depth, 0), 8)
	indent := strings.Repeat("  ", depth)
	if format := l.formats[l.lists[list]+" "+strconv.Itoa(depth)]; format == "bullet" || format == "none" || format == "" {
		return indent + "- "
	}
	if len(l.last) > maxStyles {
		clear(l.last)
	}
	l.last[list+" "+strconv.Itoa(depth)]++
	for below := depth + 1; below < 9; below++ {
		delete(l.last, list+" "+strconv.Itoa(below))
	}
	return strings.Repeat("   ", depth) + strconv.Itoa(l.last[list+" "+strconv.Itoa(depth)]) + ". "
}
