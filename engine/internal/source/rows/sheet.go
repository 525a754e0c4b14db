package rows

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
)

// This file reads the sheets of an Excel workbook, which is a zip file of XML, cell by cell. The excelize library
// returns only what cells show, not their types or formulas.

// Book is a workbook. Its parts are read when they are needed.
type Book struct {
	Sheets []Sheet

	parts    map[string]*zip.File // by their names in lower case
	looks    map[*zip.File]*look
	textPart string
	texts    *sharedTexts   // nil: not read yet
	formats  []numberFormat // by the number of a cell's style
	from1904 bool           // days are counted from 1904
	stale    bool           // formulas must be computed again
	units    bool           // numbers have their units
}

// Sheet is a sheet of a workbook.
type Sheet struct {
	Name   string
	Hidden bool
	part   string
}

func newBook(z *zip.Reader) *Book {
	b := &Book{parts: map[string]*zip.File{}, looks: map[*zip.File]*look{}}
	for _, f := range z.File {
		b.parts[partName(f.Name)] = f
	}
	return b
}

func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/"))
}

// OpenBook opens a workbook for a reader of documents, whose numbers have their units.
func OpenBook(z *zip.Reader) (*Book, error) {
	b := newBook(z)
	b.units = true
	return b, b.open()
}

// open reads the list of sheets and formats.
func (b *Book) open() error {
	top, err := b.relations("")
	if err != nil {
		return err
	}
	main := cmp.Or(top["officeDocument"], "xl/workbook.xml")
	var book struct {
		From1904 struct {
			Is bool `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Sheets []struct {
			Name  string `xml:"name,attr"`
			State string `xml:"state,attr"`
			ID    string `xml:"id,attr"`
		} `xml:"sheets>sheet"`
		Stale struct {
			Is bool `xml:"fullCalcOnLoad,attr"`
		} `xml:"calcPr"`
	}
	var styles struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	parts, err := b.relations(main)
	err = cmp.Or(err, b.decode(main, &book), b.decode(cmp.Or(parts["styles"], "xl/styles.xml"), &styles))
	if err == nil && len(book.Sheets) == 0 {
		err = errors.New("it has no sheets")
	}
	b.from1904, b.stale, b.textPart = book.From1904.Is, book.Stale.Is, cmp.Or(parts["sharedStrings"], "xl/sharedStrings.xml")
	for _, s := range book.Sheets {
		b.Sheets = append(b.Sheets, Sheet{Name: s.Name, Hidden: s.State != "" && s.State != "visible", part: parts[s.ID]})
	}
	codes := map[int]string{}
	for _, f := range styles.Formats {
		codes[f.ID] = f.Code
	}
	for _, c := range styles.Cells {
		b.formats = append(b.formats, parseFormat(cmp.Or(codes[c.Format], builtIn(c.Format))))
	}
	return err
}

// relations returns the parts that a part refers to, by their ids and their types. An empty part means the whole
// workbook.
func (b *Book) relations(part string) (map[string]string, error) {
	folder, name := path.Split(part)
	var all struct {
		Relations []struct {
			ID     string `xml:"Id,attr"`
			Type   string `xml:"Type,attr"`
			Target string `xml:"Target,attr"`
		} `xml:"Relationship"`
	}
	err := b.decode(folder+"_rels/"+name+".rels", &all)
	parts := map[string]string{}
	for _, r := range all.Relations {
		if !strings.HasPrefix(r.Target, "/") {
			r.Target = folder + r.Target
		}
		parts[path.Base(r.Type)], parts[r.ID] = r.Target, r.Target
	}
	return parts, err
}

func (b *Book) decode(part string, to any) error {
	return b.read(part, func(d *xml.Decoder) error { return d.Decode(to) })
}

// read reads a part to its end; a missing part is empty.
func (b *Book) read(part string, f func(*xml.Decoder) error) error {
	file := b.parts[partName(part)]
	if file == nil {
		return nil
	}
	in, err := file.Open()
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if err := f(newXML(in)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}

func newXML(in io.Reader) *xml.Decoder {
	d := xml.NewDecoder(in)
	d.CharsetReader = charset.NewReaderLabel
	return d
}

// look holds the results of a first pass over the XML of a sheet, before its rows are read.
type look struct {
	merged   []merge // in the order of their first rows
	computed bool    // some formula has a value other than 0

	in      string // the latest open element
	cells   int    // of the latest row
	formula bool   // the latest cell has a formula
}

// merge is a range of merged cells in several rows. The first cell has the value.
type merge struct{ column, from, to int }

func (l *look) see(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		switch l.in = t.Name.Local; l.in {
		case "row":
			l.cells = 0
		case "c":
			l.formula = false
			if l.cells++; l.cells > maxColumns {
				return errors.New("a row has too many cells")
			}
		case "f":
			l.formula = true
		case "mergeCell":
			for _, a := range t.Attr {
				first, last, _ := strings.Cut(a.Value, ":")
				column, from := position(first)
				if _, to := position(last); a.Name.Local == "ref" && column >= 0 && to > from {
					l.merged = append(l.merged, merge{column, from, to})
				}
			}
		}
	case xml.EndElement:
		l.in = ""
	case xml.CharData:
		l.computed = l.computed || l.formula && l.in == "v" && string(t) != "0"
	}
	return nil
}

var cellName = regexp.MustCompile(`^\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$`)

// position returns the column (from 0 on) and the row of a cell such as B7; -1 and 0: the name has another form.
func position(cell string) (column, row int) {
	m := cellName.FindStringSubmatch(cell)
	if m == nil {
		return -1, 0
	}
	for _, r := range strings.ToUpper(m[1]) {
		column = 26*column + int(r-'A') + 1
	}
	row, _ = strconv.Atoi(m[2])
	return column - 1, row
}

// Limits of a sheet.
const (
	maxColumns = 1 << 14
	maxRows    = 1 << 20
)

// SheetRows reads the rows of a sheet.
type SheetRows struct {
	Row        int   // number of the latest row, as Excel shows it
	Uncomputed []int // positions of the row's formulas without a value
	Filled     int   // cells so far with the value of a merged cell above

	book   *Book
	in     io.Closer
	d      *xml.Decoder
	look   *look
	left   []merge          // merges that begin below the latest row
	merged map[int]mergedIn // by their columns
	cells  []string
	cut    []int // positions of numbers whose last digits are missing in the file
}

type mergedIn struct {
	to         int
	value      string
	uncomputed bool
}

// Rows opens a sheet.
func (b *Book) Rows(s Sheet) (*SheetRows, error) {
	f := b.parts[partName(s.part)]
	if f == nil {
		return nil, fmt.Errorf("there is nothing in the sheet %q", s.Name)
	}
	if b.looks[f] == nil {
		if err := b.unpack(f, true); err != nil {
			return nil, err
		}
	}
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	return &SheetRows{book: b, in: in, d: newXML(in), look: b.looks[f], left: b.looks[f].merged, merged: map[int]mergedIn{}}, nil
}

// Close closes the sheet.
func (r *SheetRows) Close() error { return r.in.Close() }

// unmerge leaves cells empty below merged cells that begin in the rows so far.
func (r *SheetRows) unmerge() { clear(r.merged) }

// sheetCell is a cell in the XML of a sheet.
type sheetCell struct {
	Name    string    `xml:"r,attr"`
	Type    string    `xml:"t,attr"`
	Style   int       `xml:"s,attr"`
	Formula *struct{} `xml:"f"`
	Value   *string   `xml:"v"`
	Inline  richText  `xml:"is"`
}

// richText is a text, alone or in runs, without the pronunciation of Japanese words.
type richText struct {
	Text string `xml:"t"`
	Runs []struct {
		Text string `xml:"t"`
	} `xml:"r"`
}

func (t richText) String() string {
	for _, run := range t.Runs {
		t.Text += run.Text
	}
	return unescaped(t.Text)
}

// Next returns the values of the cells of the next row, up to the last cell that is not empty. They are valid until the
// next call. It ends with io.EOF.
func (r *SheetRows) Next() ([]string, error) {
	r.cells, r.Uncomputed, r.cut = r.cells[:0], r.Uncomputed[:0], r.cut[:0]
	for {
		t, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "row" {
			continue
		}
		var row struct {
			Number int         `xml:"r,attr"`
			Cells  []sheetCell `xml:"c"`
		}
		if err := r.d.DecodeElement(&row, &e); err != nil {
			return nil, err
		}
		if r.Row = cmp.Or(row.Number, r.Row+1); r.Row > maxRows || r.Row < 0 {
			return nil, fmt.Errorf("there is no row %d", r.Row)
		}
		column := -1
		for _, c := range row.Cells {
			if column++; c.Name != "" {
				column, _ = position(c.Name)
			}
			if column < 0 || column >= maxColumns {
				return nil, fmt.Errorf("no cell is called %q", c.Name)
			}
			if err := r.cell(c, column); err != nil {
				return nil, err
			}
		}
		r.fill()
		return r.cells, nil
	}
}

// cutOff matches a number of at least 16 digits as Excel and openpyxl write it.
var cutOff = regexp.MustCompile(`^-?[0-9]\.[0-9]{13,}[eE]\+?(1[5-9]|2[0-9])$`)

// cell reads a cell into its column. An error in the cell, such as #N/A, gives no value.
func (r *SheetRows) cell(c sheetCell, column int) (err error) {
	raw := ""
	if c.Value != nil {
		raw = *c.Value
	}
	if c.Formula != nil && (c.Value == nil || raw == "" && c.Type != "str" || raw == "0" && r.book.stale && !r.look.computed) {
		r.Uncomputed = append(r.Uncomputed, column)
		return nil
	}
	switch {
	case c.Type == "inlineStr":
		raw = cmp.Or(c.Inline.String(), raw)
	case c.Type == "str":
		raw = unescaped(raw)
	case raw == "", c.Type == "e":
		return nil
	case c.Type == "s":
		raw, err = r.book.text(raw)
	case c.Type == "b" && (raw == "1" || raw == "true"):
		raw = "TRUE"
	case c.Type == "b":
		raw = "FALSE"
	case c.Type == "d":
		raw = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(raw, "Z"), ".000"), "T00:00:00")
	default:
		if cutOff.MatchString(raw) {
			r.cut = append(r.cut, column)
		}
		var format numberFormat
		if c.Style >= 0 && c.Style < len(r.book.formats) {
			format = r.book.formats[c.Style]
		}
		raw = format.value(raw, r.book.from1904, r.book.units)
	}
	r.set(column, raw)
	return err
}

func (r *SheetRows) set(column int, value string) {
	if value == "" {
		return
	}
	for len(r.cells) <= column {
		r.cells = append(r.cells, "")
	}
	r.cells[column] = value
}

// fill gives empty cells the value of their merged cell, if the row has other values.
func (r *SheetRows) fill() {
	for len(r.left) > 0 && r.left[0].from <= r.Row {
		if m := r.left[0]; m.from == r.Row {
			in := mergedIn{to: m.to, uncomputed: slices.Contains(r.Uncomputed, m.column)}
			if m.column < len(r.cells) {
				in.value = r.cells[m.column]
			}
			r.merged[m.column] = in
		}
		r.left = r.left[1:]
	}
	if r.blank() {
		return
	}
	for column, m := range r.merged {
		switch {
		case r.Row > m.to:
			delete(r.merged, column)
		case m.uncomputed && !slices.Contains(r.Uncomputed, column):
			r.Uncomputed = append(r.Uncomputed, column)
		case m.value != "" && (column >= len(r.cells) || r.cells[column] == ""):
			r.set(column, m.value)
			r.Filled++
		}
	}
}

// blank reports whether the latest row has no values.
func (r *SheetRows) blank() bool {
	return len(r.Uncomputed) == 0 && !slices.ContainsFunc(r.cells, func(c string) bool { return strings.TrimSpace(c) != "" })
}

// sharedTexts holds the texts that cells refer to by number. They are in memory or, if there are many, in a temporary
// file.
type sharedTexts struct {
	in   io.ReaderAt
	ends []int64
	file *os.File // nil: in memory
}

// text returns a shared text; empty: there is none with this number.
func (b *Book) text(number string) (string, error) {
	if b.texts == nil {
		if err := b.readTexts(); err != nil {
			return "", err
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || n < 0 || n >= len(b.texts.ends)-1 {
		return "", nil //nolint:nilerr // the cell is empty
	}
	text := make([]byte, b.texts.ends[n+1]-b.texts.ends[n])
	_, err = b.texts.in.ReadAt(text, b.texts.ends[n])
	return string(text), err
}

func (b *Book) readTexts() error {
	var memory bytes.Buffer
	out := bufio.NewWriter(&memory)
	b.texts = &sharedTexts{ends: []int64{0}}
	if f := b.parts[partName(b.textPart)]; f != nil && f.UncompressedSize64 > inMemory {
		file, err := os.CreateTemp("", "racflow-")
		if err != nil {
			return err
		}
		b.texts.in, b.texts.file, out = file, file, bufio.NewWriter(file)
	}
	err := b.read(b.textPart, func(d *xml.Decoder) error {
		for {
			t, err := d.Token()
			if err != nil {
				return err
			}
			if e, ok := t.(xml.StartElement); ok && e.Name.Local == "si" {
				var text richText
				if err := d.DecodeElement(&text, &e); err != nil {
					return err
				}
				n, _ := out.WriteString(text.String()) // Flush reports errors
				b.texts.ends = append(b.texts.ends, b.texts.ends[len(b.texts.ends)-1]+int64(n))
			}
		}
	})
	err = errors.Join(err, out.Flush())
	if b.texts.file == nil {
		b.texts.in = bytes.NewReader(memory.Bytes())
	}
	return err
}

// Close removes what was unpacked.
func (b *Book) Close() error {
	if b.texts == nil || b.texts.file == nil {
		return nil
	}
	return errors.Join(b.texts.file.Close(), os.Remove(b.texts.file.Name()))
}

var escape = regexp.MustCompile(`_x[0-9a-fA-F]{4}_`)

// unescaped replaces codes for characters that XML cannot hold, such as _x000D_.
func unescaped(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	return escape.ReplaceAllStringFunc(text, func(code string) string {
		n, _ := strconv.ParseUint(code[2:6], 16, 32)
		return string(rune(n))
	})
}
