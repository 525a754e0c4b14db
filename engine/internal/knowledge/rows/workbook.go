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

// This file reads the rows of Parquet files and of workbooks of Excel, by libraries that
// were made for files of good will. So it looks at a file before it gives it to them, for
// sizes that nobody writes, and turns their panics into errors.
//
// Both formats are read from a file, at any place, and not from a stream. The package does not
// know what columns mean.

// meaning is what the values of a column mean that are written as numbers or bytes.
type meaning struct {
	decimals int           // of a number; -1: it is none that is written so
	date     bool          // days since 1970
	unit     time.Duration // since 1970; 0: it is no time
	classes  []string      // names that its numbers stand for; nil: they are numbers
}

// classesOf are the names of classes by column, as the library datasets of Hugging Face writes them beside
// the rows, of columns of numbers and of lists of them.
func classesOf(file *parquet.File) map[string][]string {
	text, _ := file.Lookup("huggingface")
	var said struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &said) != nil {
		return nil // another's, or none
	}
	classes := map[string][]string{}
	for name, raw := range said.Info.Features {
		var f struct {
			Names   []string        `json:"names"`
			Feature json.RawMessage `json:"feature"` // of the elements of a list
		}
		if json.Unmarshal(raw, &f) == nil && f.Feature != nil {
			_ = json.Unmarshal(f.Feature, &f) // another kind has no names
		}
		if len(f.Names) > 0 {
			classes[name] = f.Names
		}
	}
	return classes
}

// named puts the names of classes in place of their numbers; -1 stands for none.
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

// valueOf is a value of a column as rows have it.
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

// text is what bytes say: a decimal number, text, or neither.
func text(v []byte, decimals int) any {
	switch {
	case decimals >= 0 && len(v) > 0 && len(v) <= 64:
		n := new(big.Int).SetBytes(v)
		if v[0]&0x80 != 0 { // two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
		}
		return decimal(n, decimals)
	case utf8.Valid(v):
		return string(v)
	}
	return base64.StdEncoding.EncodeToString(v)
}

// decimal is a number with a point before its last digits.
func decimal(n *big.Int, decimals int) any {
	scaled := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	return json.Number(scaled.FloatString(decimals))
}

// float is a number; what is none in JSON is a text.
func float(v float64, bits int) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, bits)
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits))
}

// plain is a nested value as JSON can hold it.
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

// Limits of the XML of a sheet, which the decoder holds in memory.
const (
	maxToken = 16 << 20 // bytes of a text, a tag or a comment
	maxDepth = 64       // elements in one another
)

// checkXML reads XML to its end, and refuses what is none or would take much memory.
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

// tokens ends where a token is too long.
type tokens struct {
	in    io.Reader
	since int // bytes since the last token, but for those that the decoder has read ahead
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
