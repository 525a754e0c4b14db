package rows

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/xuri/excelize/v2"
	"golang.org/x/net/html/charset"
)

// This file reads the rows of Parquet files and of Excel workbooks, by libraries that trust their
// files. So it first checks a file for absurd sizes, and turns panics of the libraries into errors.
//
// Both formats need random access to a file, not a stream. The package does not know what columns
// mean.

// meaning says how to read the numbers or bytes of a column.
type meaning struct {
	decimals int           // decimals of a decimal number; -1: it is none
	date     bool          // numbers are days since 1970
	unit     time.Duration // unit of numbers that are times since 1970; 0: they are none
	classes  []string      // class names that the numbers index; nil: none
}

// classesOf returns the names of classes by column, from the metadata of Hugging Face's library datasets.
// They apply to columns of numbers and of lists of numbers.
func classesOf(file *parquet.File) map[string][]string {
	text, _ := file.Lookup("huggingface")
	var said struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &said) != nil {
		return nil // another program's metadata, or none
	}
	classes := map[string][]string{}
	for name, raw := range said.Info.Features {
		var f struct {
			Names   []string        `json:"names"`
			Feature json.RawMessage `json:"feature"` // of a list's elements
		}
		if json.Unmarshal(raw, &f) == nil && f.Feature != nil {
			_ = json.Unmarshal(f.Feature, &f) // other features have no names
		}
		if len(f.Names) > 0 {
			classes[name] = f.Names
		}
	}
	return classes
}

// named replaces the numbers of classes by their names, and -1 by nil.
func (m meaning) named(value any) any {
	switch v := value.(type) {
	case int32:
		return m.named(int64(v))
	case int64:
		if v >= 0 && v < int64(len(m.classes)) {
			return m.classes[v]
		} else if v == -1 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = m.named(v[i])
		}
	}
	return value
}

func meaningOf(column parquet.Node) meaning {
	m := meaning{decimals: -1}
	if !column.Leaf() {
		return m
	}
	logical := column.Type().LogicalType()
	if logical == nil {
		return m
	}
	switch t := logical.Value.(type) {
	case *format.DecimalType:
		m.decimals = int(max(0, min(t.Scale, 1000)))
	case *format.DateType:
		m.date = true
	case *format.TimestampType:
		name := t.String()
		for unit, length := range map[string]time.Duration{"MILLIS": time.Millisecond, "MICROS": time.Microsecond, "NANOS": time.Nanosecond} {
			if strings.Contains(name, unit) {
				m.unit = length
			}
		}
	}
	return m
}

// valueOf converts a value of a column to a value of a row.
func (m meaning) valueOf(value any) any {
	if m.classes != nil {
		value = m.named(value)
	}
	switch v := value.(type) {
	case nil, bool:
		return v
	case string:
		return text([]byte(v), m.decimals)
	case []byte:
		return text(v, m.decimals)
	case int32:
		return m.whole(int64(v))
	case int64:
		return m.whole(v)
	case uint32:
		return json.Number(strconv.FormatUint(uint64(v), 10))
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	case float32:
		return float(float64(v), 32)
	case float64:
		return float(v, 64)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case map[string]any, []any:
		if raw, err := json.Marshal(plain(v)); err == nil {
			return json.RawMessage(raw)
		}
	}
	return fmt.Sprint(value)
}

func (m meaning) whole(n int64) any {
	switch {
	case m.date:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(n)).Format(time.DateOnly)
	case m.unit == time.Millisecond:
		return time.UnixMilli(n).UTC().Format(time.RFC3339Nano)
	case m.unit == time.Microsecond:
		return time.UnixMicro(n).UTC().Format(time.RFC3339Nano)
	case m.unit == time.Nanosecond:
		return time.Unix(0, n).UTC().Format(time.RFC3339Nano)
	case m.decimals > 0:
		return decimal(big.NewInt(n), m.decimals)
	}
	return json.Number(strconv.FormatInt(n, 10))
}

// text converts bytes: to a decimal number, a text, or neither.
func text(v []byte, decimals int) any {
	switch {
	case decimals >= 0 && len(v) > 0 && len(v) <= 64:
		n := new(big.Int).SetBytes(v)
		if v[0]&0x80 != 0 { // negative in two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
		}
		return decimal(n, decimals)
	case utf8.Valid(v):
		return string(v)
	}
	return base64.StdEncoding.EncodeToString(v)
}

// decimal returns a number with a point before its last digits.
func decimal(n *big.Int, decimals int) any {
	scaled := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	return json.Number(scaled.FloatString(decimals))
}

// float returns a number, or a text where JSON has no such number.
func float(v float64, bits int) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, bits)
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits))
}

// plain converts a nested value to one that JSON can encode.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	case []byte:
		return text(v, -1)
	case float32:
		return float(float64(v), 32)
	case float64:
		return float(v, 64)
	}
	return value
}

// Limits of a workbook, in bytes.
const (
	maxUnpacked = 8 << 30   // unpacked, in all
	maxRatio    = 250       // unpacked bytes for each packed one
	freeBytes   = 64 << 20  // maxRatio applies beyond so many unpacked bytes
	inMemory    = 16 << 20  // a larger sheet is unpacked to a temporary file
	maxOther    = 128 << 20 // of other parts than sheets and the table of texts, which are read into memory
)

// Workbook reads the rows of a sheet.
type Workbook struct {
	file  *excelize.File
	sheet string
	rows  *excelize.Rows
	n     int
	width int
	skip  int // number of rows to skip before the first one returned
}

// OpenWorkbook opens a file of a size in bytes, at the named sheet or, with an empty name, at the
// first one with rows.
func OpenWorkbook(in io.ReaderAt, size int64, sheet string) (w *Workbook, err error) {
	defer recovered(&err)
	if err := checkWorkbook(in, size); err != nil {
		return nil, err
	}
	limits := excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: inMemory}
	var file *excelize.File
	if f, ok := in.(*os.File); ok { // such a file is not read into memory
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
			continue // a chart has no rows
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

// Sheets returns the names of all sheets.
func (w *Workbook) Sheets() []string { return w.file.GetSheetList() }

// Skip skips so many rows of the sheet, counting blank ones.
func (w *Workbook) Skip(rows int) { w.skip = rows }

// Sheet returns the name of the open sheet.
func (w *Workbook) Sheet() string { return w.sheet }

// Row returns the number of the latest row, as Excel shows it.
func (w *Workbook) Row() int { return w.n }

// Next returns the cells of the next row that is not blank, as Excel shows them: at least as many
// as the first row has. It ends with io.EOF.
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

// Close closes the workbook and removes unpacked files.
func (w *Workbook) Close() (err error) {
	defer recovered(&err)
	if w.rows != nil {
		err = w.rows.Close()
	}
	return errors.Join(err, w.file.Close())
}

// checkWorkbook unpacks a workbook without keeping anything, and refuses it if it is damaged or its
// sizes are out of proportion.
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

// unpack reads a part to its end, where its checksum is. It checks that a sheet is XML throughout:
// the library takes the first mistake for the end of the rows.
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

// Limits of the XML of a sheet, which the decoder holds in memory.
const (
	maxToken = 16 << 20 // bytes of a text, a tag or a comment
	maxDepth = 64       // nested elements
)

// checkXML reads XML to its end, and refuses invalid XML and XML that would take much memory.
func checkXML(in io.Reader) error {
	token := &tokens{in: in}
	d := xml.NewDecoder(token)
	d.CharsetReader = charset.NewReaderLabel
	for depth := 0; ; {
		t, err := d.Token()
		switch {
		case token.tooLong():
			return fmt.Errorf("a text is longer than %d bytes", maxToken)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		token.since = 0
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxDepth {
			return fmt.Errorf("more than %d elements stand in one another", maxDepth)
		}
	}
}

// tokens fails when a token is too long.
type tokens struct {
	in    io.Reader
	since int // bytes since the last token, without those that the decoder has read ahead
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
