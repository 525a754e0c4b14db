package table

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Limits of a workbook, in bytes.
const (
	maxUnpacked = 8 << 30   // all of it
	maxRatio    = 250       // unpacked to packed, from
	freeBytes   = 64 << 20  // so many on
	inMemory    = 16 << 20  // of a sheet: a larger one is unpacked to a temporary file
	maxOther    = 128 << 20 // of all that is no sheet and no table of texts, which is read into memory
)

// Workbook reads the rows of a sheet.
type Workbook struct {
	file  *excelize.File
	sheet string
	rows  *excelize.Rows
	n     int
	width int
	skip  int // rows before the first that is returned
}

// OpenWorkbook opens a file of a size in bytes: of the sheet of that name or, where it is
// empty, of the first one with rows.
func OpenWorkbook(in io.ReaderAt, size int64, sheet string) (w *Workbook, err error) {
	defer recovered(&err)
	if err := checkWorkbook(in, size); err != nil {
		return nil, err
	}
	limits := excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: inMemory}
	var file *excelize.File
	if f, ok := in.(*os.File); ok { // which need not be in memory
		file, err = excelize.OpenFile(f.Name(), limits)
	} else {
		file, err = excelize.OpenReader(io.NewSectionReader(in, 0, size), limits)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no workbook that can be read (%w): open it in Excel or LibreOffice and save it as .xlsx once more, or as CSV", err)
	}
	w = &Workbook{file: file}
	if err := w.choose(sheet); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// choose opens a sheet.
func (w *Workbook) choose(sheet string) error {
	names := w.file.GetSheetList()
	if sheet != "" {
		if !slices.Contains(names, sheet) {
			return fmt.Errorf("there is no sheet %q; the sheets are %s", sheet, strings.Join(names, ", "))
		}
		names = []string{sheet}
	}
	for _, name := range names {
		rows, err := w.file.Rows(name)
		if err != nil {
			continue // a chart is no sheet of rows
		}
		for range 100 {
			if !rows.Next() {
				break
			}
			cells, err := rows.Columns()
			if err != nil {
				return err
			}
			if len(cells) > 0 {
				if err := rows.Close(); err != nil {
					return err
				}
				w.sheet = name
				w.rows, err = w.file.Rows(name)
				return err
			}
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return errors.New("the workbook has no rows: put the table into one of its sheets, with the names of the columns in its first row")
}

// Sheets are the names of all sheets.
func (w *Workbook) Sheets() []string { return w.file.GetSheetList() }

// Skip leaves out so many rows of the sheet, blank ones too.
func (w *Workbook) Skip(rows int) { w.skip = rows }

// Sheet is the name of the sheet.
func (w *Workbook) Sheet() string { return w.sheet }

// Row is the number of the row that was returned last, as Excel shows it.
func (w *Workbook) Row() int { return w.n }

// Next returns the cells of the next row that has any, as they are shown. There are as many
// as the first row has, or more. It ends with io.EOF.
func (w *Workbook) Next() (cells []string, err error) {
	defer recovered(&err)
	for w.rows.Next() {
		w.n++
		if cells, err = w.rows.Columns(); err != nil {
			return nil, fmt.Errorf("the sheet is damaged at row %d: %w", w.n, err)
		}
		if w.n <= w.skip || !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }) {
			continue
		}
		if w.width == 0 {
			w.width = len(cells)
		}
		for len(cells) < w.width {
			cells = append(cells, "")
		}
		return cells, nil
	}
	if err := w.rows.Error(); err != nil {
		return nil, fmt.Errorf("the sheet is damaged after row %d: %w", w.n, err)
	}
	return nil, io.EOF
}

// Close removes what was unpacked.
func (w *Workbook) Close() (err error) {
	defer recovered(&err)
	if w.rows != nil {
		err = w.rows.Close()
	}
	return errors.Join(err, w.file.Close())
}

// checkWorkbook unpacks a workbook without keeping anything, and refuses one that is damaged
// or out of all proportion.
func checkWorkbook(in io.ReaderAt, size int64) error {
	var head [8]byte
	if _, err := in.ReadAt(head[:], 0); err == nil && bytes.HasPrefix(head[:], []byte("\xD0\xCF\x11\xE0")) {
		return errors.New("the workbook has a password, or is of an Excel before 2007: open it and save it as .xlsx without a password, or as CSV")
	}
	z, err := zip.NewReader(in, size)
	if err != nil {
		return errors.New("the file is cut off, or no workbook: a file named .xlsx is a zip archive, and this is not; get it once more, or give it the name of what it is")
	}
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
			return fmt.Errorf("%d bytes unpack to %d or more: nobody writes such a workbook; if you trust the file, save the sheet as CSV", size, all)
		}
		if err := unpack(f, sheet); err != nil {
			return fmt.Errorf("the workbook is damaged (%s: %w): open it in Excel or LibreOffice and save it once more", f.Name, err)
		}
	}
	if !book {
		return errors.New("the file is a zip archive and no workbook of Excel: unpack it and name the file in it; of LibreOffice, save it as .xlsx")
	}
	return nil
}

// unpack reads a part to its end, where its checksum is. A sheet has to be XML throughout: the
// library takes the first mistake for the end of the rows.
func unpack(f *zip.File, sheet bool) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if !sheet {
		_, err = io.Copy(io.Discard, in)
		return err
	}
	return checkXML(in)
}
