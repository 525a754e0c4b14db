package document

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DOCX reads a Word document. It is an apartReader.
func DOCX(raw []byte, most int64, stop time.Time, unread Unread) (text, title string, err error) {
	return readWord(raw, most, stop, unread, false)
}

func readWord(raw []byte, most int64, stop time.Time, unread Unread, within bool) (text, title string, err error) {
	a, err := openArchive("DOCX", raw, most, stop, unread)
	if err != nil {
		return "", "", err
	}
	main, err := a.main("word/document.xml")
	if err != nil {
		return "", "", err
	}
	folder := path.Dir(main)
	w := &word{a: a, within: within, spare: int(most), styles: map[string]style{}, formats: map[string]string{}, lists: map[string]string{}, last: map[string]int{}}
	if w.parts, err = a.relations(main); err != nil {
		return "", "", err
	}
	for _, part := range []struct {
		name  string
		write func(*node)
	}{
		{folder + "/styles.xml", w.readStyles}, {folder + "/numbering.xml", w.readLists}, {main, w.blocks},
		{folder + "/footnotes.xml", func(n *node) { w.notes(n, "footnote", footnote) }},
		{folder + "/endnotes.xml", func(n *node) { w.notes(n, "endnote", endnote) }},
	} {
		root, err := a.read(part.name)
		if err != nil {
			return "", "", err
		}
		if part.name == main && (root == nil || root.name != "document") {
			return "", "", errNot("DOCX", "a Word document")
		}
		if part.write(root); w.err != nil {
			return "", "", w.err
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

// word writes the paragraphs and tables of a Word document.
type word struct {
	a       *archive
	parts   map[string]relation // of the main part
	within  bool                // in another Word document
	err     error               // first error of other parts
	spare   int                 // bytes of cells that may still be repeated
	out     strings.Builder
	styles  map[string]style
	formats map[string]string // of numbers, by "abstract list, level"
	lists   map[string]string // the abstract list of each list
	last    map[string]int    // latest number by "list level"

	note string    // mark of the note that begins
	cell *[]string // paragraphs of the current cell; nil: not in a table
	item bool      // the last paragraph was a list item
}

// unread has the elements whose text is not shown, or is repeated.
var unread = map[string]bool{
	"pPr": true, "rPr": true, "del": true, "moveFrom": true, "instrText": true, "delText": true, "Fallback": true, "delInstrText": true,
}

// blocks writes the paragraphs and tables in an element.
func (w *word) blocks(n *node) { w.inline(n, &strings.Builder{}) }

// inline appends the text in a paragraph. It writes the blocks in the paragraph, which come from text boxes.
func (w *word) inline(n *node, text *strings.Builder) {
	if n == nil {
		return
	}
	for _, inner := range n.in {
		switch {
		case unread[inner.name] || inner.name == "r" && hiddenRun(inner):
		case inner.name == "p":
			w.paragraph(inner)
		case inner.name == "tbl":
			w.table(inner)
		case inner.name == "altChunk":
			w.chunk(w.parts[relationID(inner)].part)
		case inner.name == "relIds":
			points, err := w.a.diagram(w.parts[inner.attr("dm")].part)
			for w.err = cmp.Or(w.err, err); len(points) > 0; points = points[1:] {
				w.block("- "+points[0], true)
			}
		case inner.name == "t":
			text.WriteString(inner.words())
		case inner.name == "tab" || inner.name == "ptab":
			text.WriteByte(' ')
		case inner.name == "br" || inner.name == "cr":
			text.WriteByte('\n')
		case inner.name == "noBreakHyphen":
			text.WriteByte('-')
		case inner.name == "footnoteReference":
			text.WriteString("[" + footnote + inner.attr("id") + "]")
		case inner.name == "endnoteReference":
			text.WriteString("[" + endnote + inner.attr("id") + "]")
		default:
			w.inline(inner, text)
		}
	}
}

// chunk writes a part in another format: a page, an archive with a page, a Word document, or text. RTF is not read
// (unreadParts).
func (w *word) chunk(part string) {
	raw, missing := w.a.content(part)
	text, err := "", error(nil)
	switch head := raw[:min(len(raw), 1024)]; {
	case missing != nil || bytes.HasPrefix(head, []byte(`{\rtf`)):
	case bytes.HasPrefix(head, []byte("PK")) && !w.within:
		text, _, err = readWord(raw, w.a.most, w.a.stop, w.a.unread, true)
	case bytes.Contains(bytes.ToLower(head), []byte("mime-version:")):
		text, _, err = Mail(raw, w.a.unread)
	default:
		if text, err = decode(raw, true); err == nil && path.Ext(part) != ".txt" {
			text, _, err = HTML(text, true, w.a.unread)
		}
	}
	if w.err = cmp.Or(w.err, missing, w.a.fault(part, err)); strings.TrimSpace(text) != "" {
		w.block(strings.TrimSpace(text), false)
	}
}

// hiddenRun reports whether a run is hidden: <w:vanish/> hides, <w:vanish w:val="0"/> does not.
func hiddenRun(run *node) bool {
	vanish := run.own("rPr").own("vanish")
	return vanish != nil && !slices.Contains([]string{"0", "false", "off"}, vanish.attr("val"))
}

// notes writes the notes with a name. It omits the line above the notes, which has the same name.
func (w *word) notes(root *node, name, prefix string) {
	for n := range root.all(name) {
		if kind := n.attr("type"); kind == "" || kind == "normal" {
			w.note = "[" + prefix + n.attr("id") + "]: "
			w.blocks(n)
		}
	}
}

// paragraph writes a paragraph, or adds it to the current cell.
func (w *word) paragraph(n *node) {
	var b strings.Builder
	w.inline(n, &b)
	properties := n.own("pPr")
	text, s := strings.TrimSpace(b.String()), w.style(properties.val("pStyle"))
	if text == "" || strings.HasPrefix(s.name, "toc ") {
		return
	}
	if w.cell != nil {
		*w.cell = append(*w.cell, text)
		return
	}
	list, depth := properties.own("numPr").val("numId"), properties.own("numPr").val("ilvl")
	if list == "" {
		list, depth = s.list, cmp.Or(depth, s.depth)
	}
	switch level := cmp.Or(outline(properties.val("outlineLvl")), s.level); {
	case w.note != "":
		w.block(w.note+OneLine(text), true)
		w.note = ""
	case level > 0:
		w.block(Heading(level, text), false)
	case list != "" && list != "0":
		w.block(w.mark(list, depth)+OneLine(text), true)
	default:
		w.block(text, false)
	}
}

// block writes a block. Items of a list have no empty line between them.
func (w *word) block(text string, item bool) {
	if w.out.Len() > 0 && !(item && w.item) {
		w.out.WriteByte('\n')
	}
	w.out.WriteString(text + "\n")
	w.item = item
}

// table writes a table. A table with a single row or column is a frame around its text. In a table, its rows become a
// part of the cell.
func (w *word) table(n *node) {
	outer, g := w.cell, grid{spare: &w.spare}
	var rows [][]string // the own text of each cell
	for row := range n.all("tr") {
		if row.own("trPr").own("del") != nil {
			continue
		}
		var cells []gridCell
		var own []string
		column := 0
		for cell := range row.all("tc") {
			var paragraphs []string
			w.cell = &paragraphs
			w.blocks(cell)
			span, _ := strconv.Atoi(cell.own("tcPr").val("gridSpan"))
			text, merged := strings.Join(paragraphs, " "), cell.own("tcPr").own("vMerge")
			own = append(own, text)
			if text == "" && merged != nil && merged.attr("val") != "restart" {
				text = g.above(column)
			}
			cells = append(cells, gridCell{text: text, columns: span})
			column += min(max(span, 1), maxSpan)
		}
		rows = append(rows, own)
		g.row(cells)
	}
	w.cell = outer
	switch {
	case outer != nil:
		for _, row := range rows {
			*outer = append(*outer, strings.Join(slices.DeleteFunc(row, func(c string) bool { return c == "" }), " "))
		}
	case g.tabular():
		w.block(strings.TrimSuffix(table(g.rows), "\n"), false)
	default:
		for _, cell := range slices.Concat(rows...) {
			if cell != "" {
				w.block(cell, false)
			}
		}
	}
}

// style describes the kind of paragraph that a style makes.
type style struct {
	name, basedOn string
	level         int    // level of a heading; 0: no heading
	list, depth   string // id and depth of a list; "": no list
}

func (w *word) readStyles(root *node) {
	for n := range root.all("style") {
		list := n.first("numPr")
		s := style{name: strings.ToLower(n.val("name")), basedOn: n.val("basedOn"), list: list.val("numId"), depth: list.val("ilvl")}
		if rest, ok := strings.CutPrefix(s.name, "heading "); ok {
			s.level, _ = strconv.Atoi(rest)
		} else if s.name == "title" {
			s.level = 1
		}
		s.level = cmp.Or(s.level, outline(n.own("pPr").val("outlineLvl")))
		w.styles[n.attr("styleId")] = s
	}
}

// outline turns an outline level, from 0, into a heading level, from 1. Outline level 9 is text.
func outline(value string) int {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < 9 {
		return n + 1
	}
	return 0
}

// style returns a style with the properties that it inherits.
func (w *word) style(id string) (found style) {
	for range 10 { // inheritance may be circular
		one := w.styles[id]
		found.name, found.level = cmp.Or(found.name, one.name), cmp.Or(found.level, one.level)
		if found.list == "" {
			found.list, found.depth = one.list, one.depth
		}
		id = one.basedOn
	}
	return found
}

// readLists reads which levels of each list have numbers.
func (w *word) readLists(root *node) {
	for n := range root.all("abstractNum") {
		for level := range n.all("lvl") {
			w.formats[n.attr("abstractNumId")+" "+level.attr("ilvl")] = level.val("numFmt")
		}
	}
	for n := range root.all("num") {
		w.lists[n.attr("numId")] = n.val("abstractNumId")
	}
}

// mark returns the beginning of the next item of a list.
func (w *word) mark(list, level string) string {
	depth, _ := strconv.Atoi(level)
	depth = min(max(depth, 0), 8)
	if format := w.formats[w.lists[list]+" "+strconv.Itoa(depth)]; format == "bullet" || format == "none" || format == "" {
		return strings.Repeat("  ", depth) + "- "
	}
	w.last[list+" "+strconv.Itoa(depth)]++
	for below := depth + 1; below < 9; below++ {
		delete(w.last, list+" "+strconv.Itoa(below))
	}
	return strings.Repeat("   ", depth) + strconv.Itoa(w.last[list+" "+strconv.Itoa(depth)]) + ". "
}
