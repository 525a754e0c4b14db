package document

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"
)

const maxSlides = 10_000

// PPTX reads slides. It is an ApartReader.
func PPTX(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	a, err := openArchive("PPTX", raw, most, stop)
	if err != nil {
		return "", "", err
	}
	main, err := a.main("ppt/presentation.xml")
	if err != nil {
		return "", "", err
	}
	var order order
	if err := a.read(main, &order); err != nil {
		return "", "", err
	}
	if a.root != "presentation" {
		return "", "", errNot("PPTX", "a presentation")
	}
	parts, err := a.relations(main)
	if err != nil {
		return "", "", err
	}
	var out strings.Builder
	if len(order) > maxSlides {
		return "", "", errTooLong
	}
	for i, id := range order {
		s := &slide{before: out.Len()}
		part := parts.to[id].part
		if err := a.read(part, s); err != nil {
			return "", "", err
		}
		if s.hidden {
			continue
		}
		to, err := a.relations(part)
		if err != nil {
			return "", "", err
		}
		notes := &slide{notes: true, before: out.Len() + s.size()}
		if err := a.read(to.of("notesSlide"), notes); err != nil {
			return "", "", err
		}
		if int64(out.Len()) > most {
			return "", "", errTooLong
		}
		heading := fmt.Sprintf("Slide %d", i+1)
		if s.title = OneLine(s.title); s.title != "" {
			heading += ": " + s.title
		}
		out.WriteString(Heading(2, heading) + "\n\n")
		if body := strings.TrimSpace(s.out.String()); body != "" {
			out.WriteString(body + "\n\n")
		}
		if said := strings.TrimSpace(notes.out.String()); said != "" {
			out.WriteString("Notes: " + said + "\n\n")
		}
		if title == "" {
			title = s.title
		}
	}
	if own := a.title(); own != "" && !strings.EqualFold(own, "PowerPoint Presentation") {
		title = own
	}
	if out.Len() == 0 {
		return "", title, nil
	}
	return strings.TrimRight(strings.ToValidUTF8(out.String(), "\uFFFD"), "\n") + "\n", title, nil
}

// order lists the relation ids of slides, in order.
type order []string

func (o *order) start(name string, e xml.StartElement) {
	if name == "sldId" {
		for _, a := range e.Attr {
			if a.Name.Local == "id" && a.Name.Space != "" { // the id without a name space is a number
				*o = append(*o, a.Value)
			}
		}
	}
}
func (*order) end(string)  {}
func (*order) text(string) {}
func (*order) size() int   { return 0 }

// slide writes the text of a slide, or of its speaker notes.
type slide struct {
	out    strings.Builder
	title  string
	notes  bool // reads speaker notes only
	before int  // bytes of the text before this slide
	hidden bool

	place  string // kind of the current shape: "title", "body", "sldNum"; empty: unspecified
	line   strings.Builder
	level  int
	inText bool
	items  bool // the last paragraph was a list item
	table  *table
	skip   int // depth in an element to leave out
}

func (s *slide) size() int { return s.before + s.out.Len() }

func (s *slide) start(name string, e xml.StartElement) {
	if s.skip > 0 || name == "Fallback" || name == "cNvPr" && attr(e, "hidden") == "1" {
		s.skip++
		return
	}
	switch name {
	case "sld":
		s.hidden = attr(e, "show") == "0"
	case "sp", "graphicFrame":
		s.place = ""
	case "ph":
		if s.place = attr(e, "type"); s.place == "" {
			s.place = "body"
		}
	case "p":
		s.line.Reset()
		s.level = 0
	case "pPr":
		s.level, _ = strconv.Atoi(attr(e, "lvl"))
	case "t":
		s.inText = true
	case "br":
		s.line.WriteByte('\n')
	case "tbl":
		s.table = &table{}
	}
}

func (s *slide) end(name string) {
	if s.skip > 0 {
		s.skip--
		return
	}
	switch {
	case name == "t":
		s.inText = false
	case name == "p":
		s.finish()
	case s.table == nil:
	case name == "tc":
		s.table.cells = append(s.table.cells, strings.Join(s.table.cell, " "))
		s.table.cell = nil
	case name == "tr":
		s.table.rows, s.table.cells = append(s.table.rows, s.table.cells), nil
	case name == "tbl":
		s.block(strings.TrimSuffix(Table(s.table.rows), "\n"), false)
		s.table = nil
	}
}

func (s *slide) text(text string) {
	if s.skip == 0 && s.inText {
		s.line.WriteString(text)
	}
}

// finish ends a paragraph.
func (s *slide) finish() {
	text := strings.TrimSpace(s.line.String())
	if text == "" {
		return
	}
	switch {
	case s.table != nil:
		s.table.cell = append(s.table.cell, text)
	case s.place == "sldNum" || s.place == "dt" || s.place == "ftr" || s.place == "hdr" || s.notes && s.place != "body":
	case !s.notes && (s.place == "title" || s.place == "ctrTitle"):
		s.title += " " + text
	case s.place == "body" && !s.notes:
		s.block(strings.Repeat("  ", min(max(s.level, 0), 8))+"- "+OneLine(text), true)
	default:
		s.block(text, false)
	}
}

func (s *slide) block(text string, item bool) {
	if s.out.Len() > 0 && !(item && s.items) {
		s.out.WriteByte('\n')
	}
	s.out.WriteString(text + "\n")
	s.items = item
}

// Limits of unpacking a workbook: in all, and of one part in memory. Larger parts are unpacked to
// temporary files.
const (
	maxWorkbook = 2 << 30
	maxInMemory = 16 << 20
)

// XLSX reads a workbook. It is an ApartReader.
func XLSX(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	a, err := openArchive("XLSX", raw, most, stop)
	if err != nil {
		return "", "", err
	}
	f, err := excelize.OpenReader(bytes.NewReader(raw), excelize.Options{UnzipSizeLimit: maxWorkbook, UnzipXMLSizeLimit: maxInMemory, TmpDir: os.TempDir()})
	if err != nil {
		return "", "", fmt.Errorf("its XLSX cannot be read: %w%s", err, advice)
	}
	defer f.Close() //nolint:errcheck // it was only read
	w := &xlsxWorkbook{most: most, stop: stop}
	for _, name := range f.GetSheetList() {
		if visible, err := f.GetSheetVisible(name); err == nil && !visible {
			continue
		}
		rows, err := f.Rows(name)
		if errors.As(err, &excelize.ErrSheetNotExist{}) {
			continue // it is a chart
		}
		if err == nil {
			err = errors.Join(w.sheet(name, rows), rows.Close())
		}
		if errors.Is(err, errTooLong) {
			return "", "", errTooLong
		}
		if err != nil {
			return "", "", fmt.Errorf("its XLSX cannot be read: sheet %s: %w%s", name, err, advice)
		}
	}
	return strings.ToValidUTF8(w.out.String(), "\uFFFD"), a.title(), nil
}

type xlsxWorkbook struct {
	out  strings.Builder
	most int64
	stop time.Time
}

// sheet writes the rows of a sheet: rows of one cell before the first longer one as lines.
func (w *xlsxWorkbook) sheet(name string, rows *excelize.Rows) error {
	var before []string // leading rows of one cell
	size, table, begun := 0, false, false
	line := func(text string) {
		if !begun {
			if w.out.Len() > 0 {
				w.out.WriteByte('\n')
			}
			w.out.WriteString(Heading(2, name) + "\n\n")
		}
		begun = true
		w.out.WriteString(text + "\n")
	}
	for n := 0; rows.Next(); n++ {
		if n > excelize.TotalRows {
			return errors.New("it has too many rows")
		}
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		if int64(w.out.Len()+size) > w.most || n%256 == 0 && time.Now().After(w.stop) {
			return errTooLong
		}
		for len(cells) > 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
			cells = cells[:len(cells)-1]
		}
		filled := len(cells) - countEmpty(cells)
		switch {
		case filled == 0:
		case filled == 1 && !table:
			cell := OneLine(strings.Join(cells, " "))
			before, size = append(before, cell), size+len(cell)
		case !table:
			for _, text := range before {
				line(text + "\n")
			}
			before, size, table = nil, 0, true
			line(TableRow(cells))
			line(TableRule(len(cells)))
		default:
			line(TableRow(cells))
		}
	}
	if len(before) == 1 {
		line(before[0])
	} else if len(before) > 1 { // a single column
		line(TableRow(before[:1]))
		line(TableRule(1))
		for cell := range slices.Values(before[1:]) {
			line(TableRow([]string{cell}))
		}
	}
	return rows.Error()
}

func countEmpty(cells []string) (n int) {
	for _, c := range cells {
		if strings.TrimSpace(c) == "" {
			n++
		}
	}
	return n
}
