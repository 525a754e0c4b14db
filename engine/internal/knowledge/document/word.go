package document

import (
	"encoding/xml"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DOCX reads a Word document. It is an ApartReader.
func DOCX(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	a, err := openArchive("DOCX", raw, most, stop)
	if err != nil {
		return "", "", err
	}
	main, err := a.main("word/document.xml")
	if err != nil {
		return "", "", err
	}
	folder := path.Dir(main)
	w := &word{
		styles: &styles{all: map[string]*style{}},
		lists:  &lists{formats: map[string]string{}, lists: map[string]string{}, last: map[string]int{}},
	}
	for _, part := range []struct {
		name string
		handler
		note string
	}{
		{folder + "/styles.xml", w.styles, ""}, {folder + "/numbering.xml", w.lists, ""}, {main, w, ""},
		{folder + "/footnotes.xml", w, footnote}, {folder + "/endnotes.xml", w, endnote},
	} {
		w.notes = part.note
		if err := a.read(part.name, part.handler); err != nil {
			return "", "", err
		}
		if part.name == main && a.root != "document" {
			return "", "", errNot("DOCX", "a Word document")
		}
	}
	return strings.TrimRight(strings.ToValidUTF8(w.out.String(), "\uFFFD"), "\n") + "\n", a.title(), nil
}

func errNot(kind, what string) error {
	return fmt.Errorf("its %s is not %s%s", kind, what, advice)
}

// Prefixes of the marks of notes.
const (
	footnote = "^"
	endnote  = "^e"
)

// word writes the paragraphs and tables of a part of a Word document.
type word struct {
	out    strings.Builder
	styles *styles
	lists  *lists
	notes  string // prefix of the marks of the part's notes; empty: it has no notes
	note   string // mark of the current note

	open    []*paragraph // nested, as in text boxes
	tables  []*table
	skip    int  // depth in an element to leave out
	vanish  bool // the current run is hidden
	inRow   bool // inside the properties of a row
	inStyle bool // inside the properties of a paragraph
	inText  bool
	list    bool // the last paragraph was a list item
}

type paragraph struct {
	text        strings.Builder
	style       string
	level       int
	list, depth string
}

// table is a table being read. Rows of a nested table become a part of a cell.
type table struct {
	rows    [][]string
	cells   []string
	cell    []string
	span    int
	deleted bool // the current row is deleted
}

const maxSpan = 64

// unread elements contain text that is not shown, or repeated.
var unread = map[string]bool{"del": true, "moveFrom": true, "instrText": true, "delText": true, "Fallback": true, "delInstrText": true}

func (w *word) size() int {
	n := w.out.Len()
	for _, t := range w.tables {
		n += 64 * len(t.rows) // the bound on unpacked bytes covers their cells
	}
	return n
}

func (w *word) start(name string, e xml.StartElement) {
	if name == "del" && w.inRow && len(w.tables) > 0 {
		w.tables[len(w.tables)-1].deleted = true
	}
	if w.skip > 0 || unread[name] || isRule(name, e) {
		w.skip++
		return
	}
	p := w.paragraph()
	switch name {
	case "p":
		w.open = append(w.open, &paragraph{})
		w.vanish = false
	case "tbl":
		w.tables = append(w.tables, &table{})
	case "tc":
		if t := w.table(); t != nil {
			t.cell, t.span = nil, 1
		}
	case "trPr":
		w.inRow = true
	case "pPr":
		w.inStyle = true
	case "r":
		w.vanish = false
	case "t":
		w.inText = true
	case "gridSpan":
		if t := w.table(); t != nil {
			n, _ := strconv.Atoi(attr(e, "val"))
			t.span = min(max(n, 1), maxSpan)
		}
	case "footnote", "endnote":
		if w.notes != "" {
			w.note = "[" + w.notes + attr(e, "id") + "]: "
		}
	}
	if p == nil {
		return
	}
	switch name {
	case "pStyle":
		p.style = attr(e, "val")
	case "outlineLvl":
		p.level = outline(attr(e, "val"))
	case "numId":
		p.list = attr(e, "val")
	case "ilvl":
		p.depth = attr(e, "val")
	case "vanish":
		w.vanish = !w.inStyle && on(e)
	case "tab", "ptab":
		if !w.inStyle { // else it is a tab stop
			w.write(" ")
		}
	case "br", "cr":
		w.write("\n")
	case "noBreakHyphen":
		w.write("-")
	case "footnoteReference":
		w.write("[" + footnote + attr(e, "id") + "]")
	case "endnoteReference":
		w.write("[" + endnote + attr(e, "id") + "]")
	}
}

// isRule reports whether an element is the line above the notes, which is stored among them.
func isRule(name string, e xml.StartElement) bool {
	kind := attr(e, "type")
	return (name == "footnote" || name == "endnote") && kind != "" && kind != "normal"
}

func (w *word) end(name string) {
	if w.skip > 0 {
		w.skip--
		return
	}
	switch t := w.table(); {
	case name == "p" && len(w.open) > 0:
		p := w.paragraph()
		w.open = w.open[:len(w.open)-1]
		w.finish(p)
	case name == "t":
		w.inText = false
	case name == "pPr":
		w.inStyle = false
	case name == "trPr":
		w.inRow = false
	case t == nil:
	case name == "tc":
		t.cells = append(t.cells, strings.Join(t.cell, " "))
		t.cells = append(t.cells, make([]string, t.span-1)...)
		t.cell, t.span = nil, 1
	case name == "tr":
		if !t.deleted {
			t.rows = append(t.rows, t.cells)
		}
		t.cells, t.deleted = nil, false
	case name == "tbl":
		w.tables = w.tables[:len(w.tables)-1]
		w.finishTable(t)
	}
}

func (w *word) text(text string) {
	if w.skip == 0 && w.inText {
		w.write(text)
	}
}

func (w *word) paragraph() *paragraph {
	if len(w.open) == 0 {
		return nil
	}
	return w.open[len(w.open)-1]
}

func (w *word) table() *table {
	if len(w.tables) == 0 {
		return nil
	}
	return w.tables[len(w.tables)-1]
}

func (w *word) write(text string) {
	if p := w.paragraph(); p != nil && !w.vanish {
		p.text.WriteString(text)
	}
}

// finish writes a paragraph, or adds it to the current cell.
func (w *word) finish(p *paragraph) {
	text, s := strings.TrimSpace(p.text.String()), w.styles.of(p.style)
	if text == "" || strings.HasPrefix(s.name, "toc ") {
		return
	}
	if t := w.table(); t != nil {
		t.cell = append(t.cell, text)
		return
	}
	if p.level == 0 {
		p.level = s.level
	}
	if p.list == "" {
		p.list = s.list
		if p.depth == "" {
			p.depth = s.depth
		}
	}
	switch {
	case w.note != "":
		w.block(w.note+OneLine(text), true)
		w.note = ""
	case p.level > 0:
		w.block(Heading(p.level, text), false)
	case p.list != "" && p.list != "0":
		w.block(w.lists.mark(p.list, p.depth)+OneLine(text), true)
	default:
		w.block(text, false)
	}
}

// block writes a block. Items of a list have no empty line between them.
func (w *word) block(text string, item bool) {
	if w.out.Len() > 0 && !(item && w.list) {
		w.out.WriteByte('\n')
	}
	w.out.WriteString(text + "\n")
	w.list = item
}

// finishTable writes a table. One of a single row or column is a frame around its text.
func (w *word) finishTable(t *table) {
	if outer := w.table(); outer != nil {
		for _, row := range t.rows {
			outer.cell = append(outer.cell, strings.Join(slices.DeleteFunc(row, func(c string) bool { return c == "" }), " "))
		}
		return
	}
	wide := slices.ContainsFunc(t.rows, func(row []string) bool { return len(row) > 1 })
	if wide && len(t.rows) > 1 {
		if text := Table(t.rows); text != "" {
			w.block(strings.TrimSuffix(text, "\n"), false)
		}
		return
	}
	for _, cell := range slices.Concat(t.rows...) {
		if cell != "" {
			w.block(cell, false)
		}
	}
}
