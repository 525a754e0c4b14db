package rows

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// This file reads the rows of a sheet of an Excel workbook, which needs random access to the file. It first checks the
// file for absurd sizes. It turns panics into errors.

// Limits of a workbook, in bytes.
const (
	maxUnpacked = 8 << 30   // unpacked, in all
	maxRatio    = 250       // unpacked bytes for each packed byte
	freeBytes   = 64 << 20  // maxRatio applies beyond this many unpacked bytes
	inMemory    = 16 << 20  // a larger table of texts is unpacked to a temporary file
	maxOther    = 128 << 20 // of parts that are read into memory: all but sheets and the table of texts
)

// Compute says what to do about formulas without values.
const Compute = "open the file in Excel or LibreOffice and save it"

// Workbook reads the rows of a sheet.
type Workbook struct {
	book  *Book
	sheet string
	rows  *SheetRows
	ahead bool // the next row was read already
	width int
	skip  int // number of rows to skip before the first one returned
}

// OpenWorkbook opens a file with a size in bytes, at the named sheet or, without a name, at the first sheet with rows.
func OpenWorkbook(in io.ReaderAt, size int64, sheet string) (w *Workbook, err error) {
	defer recovered(&err)
	book, err := checkWorkbook(in, size)
	if err != nil {
		return nil, err
	}
	if err := book.open(); err != nil {
		return nil, fmt.Errorf("it is no workbook that can be read (%w): open it in Excel or LibreOffice and save it as .xlsx once more, or as CSV", err)
	}
	w = &Workbook{book: book}
	if err := w.choose(sheet); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// choose opens a sheet.
func (w *Workbook) choose(sheet string) error {
	if names := w.Sheets(); sheet != "" && !slices.Contains(names, sheet) {
		return fmt.Errorf("there is no sheet %q; the sheets are %s", sheet, strings.Join(names, ", "))
	}
	for _, s := range w.book.Sheets {
		if sheet != "" && s.Name != sheet {
			continue
		}
		rows, err := w.book.Rows(s)
		if err != nil {
			return err
		}
		w.sheet, w.rows, w.ahead = s.Name, rows, true
		for {
			if _, err = rows.Next(); err != nil || !rows.blank() {
				break
			}
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, io.EOF) {
			return rows.damaged(err)
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return errors.New("the workbook has no rows: put the table into one of its sheets, with the names of the columns in its first row")
}

// Sheets returns the names of all sheets.
func (w *Workbook) Sheets() (names []string) {
	for _, s := range w.book.Sheets {
		names = append(names, s.Name)
	}
	return names
}

// Skip skips this many rows of the sheet, counting blank rows.
func (w *Workbook) Skip(rows int) { w.skip = rows }

// Sheet returns the name of the open sheet.
func (w *Workbook) Sheet() string { return w.sheet }

// Row returns the number of the latest row, as Excel shows it.
func (w *Workbook) Row() int { return w.rows.Row }

// Filled returns how many cells so far have the value of a merged cell above.
func (w *Workbook) Filled() int { return w.rows.Filled }

// Unmerge declares the latest row as the names of the columns: cells merged with it then have no value.
func (w *Workbook) Unmerge() { w.rows.unmerge() }

// Next returns the next row that is not blank, with at least as many fields as the first row. It ends with io.EOF.
func (w *Workbook) Next() (r Record, err error) {
	defer recovered(&err)
	for ; ; w.ahead = false {
		if !w.ahead {
			_, err = w.rows.Next()
		}
		if errors.Is(err, io.EOF) {
			return Record{}, err
		}
		if err != nil {
			return Record{}, w.rows.damaged(err)
		}
		if w.rows.Row <= w.skip || w.rows.blank() {
			continue
		}
		w.ahead = false
		cells := w.rows.cells
		if w.width == 0 {
			w.width = len(cells)
		}
		for len(cells) < w.width {
			cells = append(cells, "")
		}
		return Record{Line: w.rows.Row, Fields: cells, Uncomputed: w.rows.Uncomputed, Cut: w.rows.cut}, nil
	}
}

func (r *SheetRows) damaged(err error) error {
	return fmt.Errorf("the sheet is damaged after row %d (%w): open it in Excel or LibreOffice and save it once more", r.Row, err)
}

// Close closes the workbook and removes unpacked files.
func (w *Workbook) Close() (err error) {
	defer recovered(&err)
	if w.rows != nil {
		err = w.rows.Close()
	}
	return errors.Join(err, w.book.Close())
}

// checkWorkbook unpacks a workbook without storing anything. It refuses a workbook that is damaged, or whose sizes are
// out of proportion.
func checkWorkbook(in io.ReaderAt, size int64) (*Book, error) {
	var head [8]byte
	if _, err := in.ReadAt(head[:], 0); err == nil && bytes.HasPrefix(head[:], []byte("\xD0\xCF\x11\xE0")) {
		return nil, errors.New("the workbook has a password, or is of an Excel before 2007: open it and save it as .xlsx without a password, or as CSV")
	}
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, errors.New("the file is cut off, or no workbook: a file named .xlsx is a zip archive, and this is not; get it once more, or give it the name of what it is")
	}
	b := newBook(z)
	var all, other uint64
	book := false
	for _, f := range z.File {
		name := strings.ToLower(strings.ReplaceAll(f.Name, "\\", "/"))
		book = book || strings.HasPrefix(name, "xl/") && strings.HasSuffix(name, ".xml")
		all += f.UncompressedSize64
		sheet := strings.HasPrefix(name, "xl/worksheets/sheet") || name == "xl/sharedstrings.xml"
		if !sheet {
			other += f.UncompressedSize64
		}
		if all < f.UncompressedSize64 || all > maxUnpacked || other > maxOther || all > freeBytes && all/maxRatio > uint64(size) {
			return nil, fmt.Errorf("%d bytes unpack to %d or more: nobody writes such a workbook; if you trust the file, save the sheet as CSV", size, all)
		}
		if err := b.unpack(f, sheet); err != nil {
			return nil, fmt.Errorf("the workbook is damaged (%s: %w): open it in Excel or LibreOffice and save it once more", f.Name, err)
		}
	}
	if !book {
		return nil, errors.New("the file is a zip archive and no workbook of Excel: unpack it and name the file in it; of LibreOffice, save it as .xlsx")
	}
	return b, nil
}

// unpack reads a part to its end, to verify its checksum. It checks that a sheet is XML throughout.
func (b *Book) unpack(f *zip.File, sheet bool) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if !sheet {
		_, err = io.Copy(io.Discard, in)
		return err
	}
	b.looks[f], err = checkXML(in)
	return err
}

// Limits of the XML of a sheet, which the decoder holds in memory.
const (
	maxToken = 16 << 20 // bytes of a text, a tag or a comment
	maxDepth = 64       // nested elements
)

// checkXML reads XML to its end. It refuses invalid XML, and XML that would take much memory.
func checkXML(in io.Reader) (*look, error) {
	token, l := &tokens{in: in}, &look{}
	d := newXML(token)
	for depth := 0; ; {
		t, err := d.Token()
		switch {
		case token.tooLong():
			return nil, fmt.Errorf("a text is longer than %d bytes", maxToken)
		case errors.Is(err, io.EOF):
			slices.SortStableFunc(l.merged, func(a, b merge) int { return cmp.Compare(a.from, b.from) })
			return l, nil
		case err != nil:
			return nil, err
		}
		token.since = 0
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxDepth {
			return nil, fmt.Errorf("more than %d elements stand in one another", maxDepth)
		}
		if err := l.see(t); err != nil {
			return nil, err
		}
	}
}

// tokens fails when a token is too long.
type tokens struct {
	in    io.Reader
	since int // bytes since the last token, without bytes that the decoder has read ahead
}

func (t *tokens) tooLong() bool { return t.since > maxToken }

func (t *tokens) Read(p []byte) (int, error) {
	if t.tooLong() {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := t.in.Read(p)
	t.since += n
	return n, err
}
