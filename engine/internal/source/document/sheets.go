package document

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/source/rows"
)

const maxSlides = 10_000

// PPTX reads slides. It is an apartReader.
func PPTX(raw []byte, most int64, stop time.Time, unread Unread) (text, title string, err error) {
	a, err := openArchive("PPTX", raw, most, stop, unread)
	if err != nil {
		return "", "", err
	}
	main, err := a.main("ppt/presentation.xml")
	if err != nil {
		return "", "", err
	}
	root, err := a.read(main)
	if err != nil {
		return "", "", err
	}
	if root == nil || root.name != "presentation" {
		return "", "", errNot("PPTX", "a presentation")
	}
	parts, err := a.relations(main)
	if err != nil {
		return "", "", err
	}
	var out strings.Builder
	number := 0
	for id := range root.all("sldId") {
		if number++; number > maxSlides || int64(out.Len()) > most {
			return "", "", errTooLong
		}
		part := parts[relationID(id)].part
		one, err := a.read(part)
		if err != nil {
			return "", "", err
		}
		if one.attr("show") == "0" {
			continue
		}
		to, err := a.relations(part)
		if err != nil {
			return "", "", err
		}
		spoken, err := a.read(related(to, "notesSlide"))
		if err != nil {
			return "", "", err
		}
		s, notes := &slide{a: a, parts: to, spare: int(most)}, &slide{notes: true}
		s.walk(one, "")
		notes.walk(spoken, "")
		if s.err != nil {
			return "", "", s.err
		}
		heading := fmt.Sprintf("Slide %d", number)
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

// relationID is the id of the relation that an element names. The id without a name space is a number.
func relationID(n *node) string {
	i := slices.IndexFunc(n.attrs, func(a xml.Attr) bool { return a.Name.Local == "id" && a.Name.Space != "" })
	if i < 0 {
		return ""
	}
	return n.attrs[i].Value
}

// slide writes the text of a slide, or of its speaker notes.
type slide struct {
	out   strings.Builder
	title string
	notes bool // reads speaker notes only
	items bool // the last paragraph was a list item

	a     *archive
	parts map[string]relation // of the slide
	err   error               // first error of other parts
	spare int                 // bytes of cells that may still be repeated
}

// walk writes the text in an element. place is the kind of the shape around it: "title", "body", "sldNum"; empty:
// unspecified.
func (s *slide) walk(n *node, place string) {
	if n == nil {
		return
	}
	for _, inner := range n.in {
		switch inner.name {
		case "Fallback": // repeats content that is elsewhere
		case "sp", "graphicFrame":
			kind := ""
			if holder := inner.first("ph"); holder != nil {
				kind = cmp.Or(holder.attr("type"), "body")
			}
			s.walk(inner, kind)
		case "p":
			s.paragraph(inner, place)
		case "tbl":
			s.table(inner)
		case "relIds":
			if s.notes {
				continue
			}
			points, err := s.a.diagram(s.parts[inner.attr("dm")].part)
			for s.err = cmp.Or(s.err, err); len(points) > 0; points = points[1:] {
				s.block("- "+points[0], true)
			}
		default:
			s.walk(inner, place)
		}
	}
}

// table writes a table.
func (s *slide) table(n *node) {
	g := grid{spare: &s.spare}
	for row := range n.all("tr") {
		var cells []gridCell
		for cell := range row.all("tc") {
			if cell.attr("hMerge") != "" || cell.attr("vMerge") != "" {
				continue // the grid repeats the cell to which this one belongs
			}
			var texts []string
			for p := range cell.all("p") {
				texts = append(texts, slideText(p))
			}
			columns, _ := strconv.Atoi(cell.attr("gridSpan"))
			rows, _ := strconv.Atoi(cell.attr("rowSpan"))
			cells = append(cells, gridCell{OneLine(strings.Join(texts, " ")), columns, rows})
		}
		g.row(cells)
	}
	s.block(strings.TrimSuffix(table(g.rows), "\n"), false)
}

// slideText is the text of a paragraph.
func slideText(n *node) string {
	text := ""
	for _, inner := range n.in {
		switch inner.name {
		case "t":
			text += inner.words()
		case "br":
			text += "\n"
		case "": // between elements
		default:
			text += slideText(inner)
		}
	}
	return text
}

func (s *slide) paragraph(n *node, place string) {
	text := strings.TrimSpace(slideText(n))
	if text == "" {
		return
	}
	switch {
	case place == "sldNum" || place == "dt" || place == "ftr" || place == "hdr" || s.notes && place != "body":
	case !s.notes && (place == "title" || place == "ctrTitle"):
		s.title += " " + text
	case place == "body" && !s.notes:
		level, _ := strconv.Atoi(n.own("pPr").attr("lvl"))
		s.block(strings.Repeat("  ", min(max(level, 0), 8))+"- "+OneLine(text), true)
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

// XLSX reads a workbook. It is an apartReader.
func XLSX(raw []byte, most int64, stop time.Time, unread Unread) (text, title string, err error) {
	a, err := openArchive("XLSX", raw, most, stop, unread)
	if err != nil {
		return "", "", err
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return "", "", err // cannot happen: the file was opened before
	}
	book, err := rows.OpenBook(z)
	if err != nil {
		return "", "", fmt.Errorf("its XLSX cannot be read: %w%s", err, advice)
	}
	defer book.Close() //nolint:errcheck // it was only read
	w := &xlsxWorkbook{most: most, stop: stop}
	for _, s := range book.Sheets {
		if s.Hidden {
			continue
		}
		in, err := book.Rows(s)
		if err == nil {
			err = errors.Join(w.sheet(s.Name, in), in.Close())
		}
		if errors.Is(err, errTooLong) {
			return "", "", errTooLong
		}
		if in != nil && len(in.Uncomputed) > 0 {
			return "", "", fmt.Errorf("its XLSX has formulas without values, the first in row %d of sheet %s: %s, or leave it out with exclude", in.Row, s.Name, rows.Compute)
		}
		if err != nil {
			return "", "", fmt.Errorf("its XLSX cannot be read: sheet %s: %w%s", s.Name, err, advice)
		}
	}
	return strings.ToValidUTF8(w.out.String(), "\uFFFD"), a.title(), nil
}

type xlsxWorkbook struct {
	out  strings.Builder
	most int64
	stop time.Time
}

// sheet writes the rows of a sheet. Rows of one cell before the first longer row become lines.
func (w *xlsxWorkbook) sheet(name string, in *rows.SheetRows) error {
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
	for n := 0; ; n++ {
		cells, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(in.Uncomputed) > 0 {
			return nil // XLSX reports it
		}
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
			line(tableRow(cells))
			line(tableRule(len(cells)))
		default:
			line(tableRow(cells))
		}
	}
	if len(before) == 1 {
		line(before[0])
	} else if len(before) > 1 { // a single column
		line(tableRow(before[:1]))
		line(tableRule(1))
		for cell := range slices.Values(before[1:]) {
			line(tableRow([]string{cell}))
		}
	}
	return nil
}

func countEmpty(cells []string) (n int) {
	for _, c := range cells {
		if strings.TrimSpace(c) == "" {
			n++
		}
	}
	return n
}
