package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/result"
)

// tableOf returns the format of a file that needs random access; empty: the file is a stream of text. It uses the
// name or the first bytes of the file.
func tableOf(f Format, in *os.File) Format {
	var head [4]byte
	n, _ := in.ReadAt(head[:], 0)
	_, packed := rows.Packed(head[:n])
	switch {
	case packed:
		return ""
	case f == Parquet, f == XLSX:
		return f
	case f == "" && bytes.Equal(head[:], []byte("PAR1")):
		return Parquet
	case f == "" && bytes.Equal(head[:], []byte("PK\x03\x04")):
		return XLSX
	}
	return ""
}

// at counts the bytes of random reads.
type at struct {
	in io.ReaderAt
	n  *atomic.Int64
}

func (a at) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.in.ReadAt(p, off)
	a.n.Add(int64(n))
	return n, err
}

// startTable prepares a Parquet file or a workbook for reading.
func (f *file) startTable(in *os.File, read *atomic.Int64) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	f.digest = func() (string, error) {
		digest, err := hashOf(io.NewSectionReader(in, 0, size))
		if errors.Is(err, os.ErrClosed) {
			return fileDigest(f.path)
		}
		return digest, err
	}
	if size == 0 {
		return f.errorAt(1, errors.New("the file is empty"))
	}
	if f.form.Format == Parquet {
		return f.startParquet(at{in, read}, size)
	}
	return f.startWorkbook(in, size, read)
}

// startParquet reads the rows of a Parquet file as objects, since their values may be nested.
func (f *file) startParquet(in io.ReaderAt, size int64) error {
	p, err := rows.OpenParquet(in, size)
	if err != nil {
		return f.errorAt(1, err)
	}
	f.lines, f.close = p.Row, both(p.Close, f.close)
	names := p.Columns()
	fields := make([]result.Field, len(names))
	err = f.startFields(func() (int, []result.Field, error, error) {
		values, err := p.Next()
		for i, v := range values {
			fields[i] = result.Field{Name: names[i], Value: v}
		}
		return p.Row(), fields, nil, err
	})
	f.columns = func() []string { return names }
	if err == nil && !f.mapping.look && f.mapping.position(names) < 0 {
		return f.errorAt(1, f.missing(names)) // there are no rows
	}
	return err
}

// position returns the index of the column with the text, or of the column in which its path begins.
func (m Mapping) position(names []string) int {
	if i := position(names, m.Text); i >= 0 {
		return i
	}
	return slices.Index(names, columnOf(m.Text).path.First())
}

// startWorkbook reads the cells of a sheet as rows.
func (f *file) startWorkbook(in io.ReaderAt, size int64, read *atomic.Int64) error {
	w, err := rows.OpenWorkbook(in, size, f.form.Sheet)
	if err != nil {
		return f.errorAt(1, err)
	}
	read.Add(size) // the whole size: the workbook is unpacked completely
	f.form.Sheet = w.Sheet()
	w.Skip(f.form.HeaderRow - 1)
	f.lines, f.close = w.Row, both(w.Close, f.close)
	first, err := w.Next()
	if err != nil {
		return f.errorAt(1, err)
	}
	if f.form.Header == nil || *f.form.Header {
		w.Unmerge()
	}
	cut := map[int]int{}
	f.uncomputed = map[int]int{}
	f.found = func() (notes []string) {
		note := func(n int, format string, more ...any) {
			if n > 0 {
				notes = append(notes, fmt.Sprintf("%s: "+format, append(append([]any{f.path}, more...), n)...))
			}
		}
		for i, name := range f.columns() {
			note(f.uncomputed[i], "formulas in column %q have no value: "+rows.Compute+" (rows: %d)", name)
			note(cut[i], "numbers in column %q have more than 15 digits, of which the file has 15: write ids and codes as texts (rows: %d)", name)
		}
		note(w.Filled(), "a merged cell has its value in each of its rows (rows below the first: %d)")
		return notes
	}
	return f.startCells(first, func() (rows.Record, error) {
		r, err := w.Next()
		for _, i := range r.Uncomputed {
			f.uncomputed[i]++
		}
		for _, i := range r.Cut {
			cut[i]++
		}
		return r, err
	})
}

// both closes a reader, then its file.
func both(first, then func() error) func() error {
	return func() error { return errors.Join(first(), then()) }
}

// Sheets returns the names of a workbook's sheets.
func Sheets(path string) ([]string, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	w, err := rows.OpenWorkbook(in, info.Size(), "")
	if err != nil {
		return nil, err
	}
	defer w.Close() //nolint:errcheck // it was only read
	return w.Sheets(), nil
}

// start prepares a text for reading.
func (f *file) start(in *bufio.Reader) error {
	_, err := in.Peek(1)
	if errors.Is(err, io.EOF) {
		err = errors.New("the file is empty")
	}
	if err == nil {
		in, f.compression, err = rows.Unpack(in)
	}
	if err == nil {
		f.text, err = rows.Decode(in, f.form.Encoding, f.patient)
	}
	if err != nil {
		return f.errorAt(1, err)
	}
	head, end, err := f.head()
	if err != nil {
		return f.errorAt(1, err)
	}
	f.form.Format = formOf(f.form.Format, head)
	switch f.form.Format {
	case TSV, CSV:
		return f.startDelimited(head, end)
	case JSONL:
		text := rows.NewLines(f.text.Reader, end)
		f.lines = text.Line
		return f.startObjects(rows.NewJSONL(text).Next, false)
	case Parquet, XLSX:
		return f.errorAt(1, fmt.Errorf("a %s file is read from its disk and not as a stream: name it as a file that is not packed; without that, its rows can come as CSV", f.form.Format))
	case JSON:
		stream := rows.NewJSONArray(f.text.Reader, f.form.Sheet)
		f.lines = stream.Line
		return f.startObjects(stream.Next, true)
	}
	return f.errorAt(1, fmt.Errorf("unknown format %q: use tsv, csv, jsonl, json, parquet or xlsx", f.form.Format))
}

// head returns the beginning of a text, up to a line end if the text is longer, and the byte that ends lines. For
// standard input, which may be slow, it returns the first line.
func (f *file) head() (head []byte, end byte, err error) {
	for n := 1; ; n = f.text.Buffered() + 1 {
		head, err = f.text.Peek(min(n, rows.BufferSize))
		if err == nil {
			head, err = f.text.Peek(f.text.Buffered())
		}
		first := bytes.IndexAny(head, "\r\n")
		ended := first >= 0 && (head[first] == '\n' || first < len(head)-1) // after a final \r, a \n may follow
		switch {
		case err == nil && len(head) < rows.BufferSize && (f.patient || !ended):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, 0, err
		case len(bytes.TrimSpace(head)) == 0 && err != nil:
			return nil, 0, errors.New("the file is empty")
		}
		end = '\n'
		if ended && head[first] == '\r' && bytes.IndexByte(head, '\n') < 0 {
			end = '\r'
		}
		switch {
		case !f.patient && ended:
			head = head[:first+1]
		case err == nil:
			head = head[:bytes.LastIndexByte(head, end)+1]
		}
		return head, end, nil
	}
}

// formOf returns the format of a text; empty: it is delimited. The content decides between JSON Lines and a JSON
// array, whatever the file's name says. It also finds JSON in a file named .csv or .tsv.
func formOf(format Format, head []byte) Format {
	text := bytes.TrimLeft(head, " \t\r\n")
	if (format == CSV || format == TSV) && rows.HoldsObject(text) {
		format = ""
	}
	if format != "" && format != JSON && format != JSONL || len(text) == 0 {
		return format
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	first = rows.Finite(first)
	alone := json.Valid(first)
	switch {
	case text[0] == '[' && !(format == JSONL && alone && len(bytes.TrimSpace(rest)) > 0):
		return JSON
	case text[0] == '{' && alone && (format == JSONL || len(bytes.TrimSpace(rest)) > 0 || !rows.HoldsRows(first)):
		return JSONL
	case text[0] == '{' && (format == "" || alone):
		return JSON
	}
	return cmp.Or(format, TSV)
}

// startDelimited detects how fields are separated, unless that is given.
func (f *file) startDelimited(head []byte, end byte) error {
	skipped := max(f.form.HeaderRow-1, 0)
	if d := separator(head, end); d != "" {
		skipped = max(skipped, 1)
		f.form.Delimiter = cmp.Or(f.form.Delimiter, d)
	}
	text := rows.NewLines(f.text.Reader, end)
	for range skipped {
		if _, err := text.Next(); err != nil && !errors.Is(err, rows.ErrLineTooLong) {
			return f.errorAt(text.Line(), fmt.Errorf("the file has no line %d that could name the columns", skipped+1))
		}
		_, head, _ = bytes.Cut(head, []byte{end})
	}
	style, err := f.style(head, end)
	if err != nil {
		return f.errorAt(1, err)
	}
	f.form.Delimiter, f.escaped = string(style.Delimiter), style.Escaped
	f.lines = text.Line
	records := rows.NewDelimited(text, style)
	first, err := records.Next()
	if err = cmp.Or(err, first.Err); errors.Is(err, io.EOF) {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return f.errorAt(max(first.Line, 1), err)
	}
	return f.startCells(first, records.Next)
}

// separator returns the delimiter that a first line such as sep=; names for Excel; empty: there is no such line.
func separator(head []byte, end byte) string {
	first, _, _ := bytes.Cut(head, []byte{end})
	d, ok := strings.CutPrefix(strings.ToLower(strings.Trim(string(first), "\"\r\n")), "sep=")
	if !ok || utf8.RuneCountInString(d) != 1 {
		return ""
	}
	return d
}

// style returns how fields are separated, quoted and escaped.
func (f *file) style(head []byte, end byte) (rows.Style, error) {
	quote := []byte(`"`)
	if f.form.Quote == NoQuote {
		quote = nil
	} else if f.form.Quote != "" {
		quote = []byte(f.form.Quote)
	}
	if len(quote) > 0 && utf8.RuneCount(quote) != 1 {
		return rows.Style{}, fmt.Errorf("quote is one character, or %q, not %q", NoQuote, f.form.Quote)
	}
	of := func(delimiter string) rows.Style {
		s := rows.Style{Delimiter: []byte(delimiter), Quote: quote}
		if delimiter == "\t" && f.form.Quote == "" && f.form.Format == TSV { // most programs write TSV without quoting
			if sure := rows.DetectStyle(head, end, s); !bytes.Contains(head, quote) || !rows.Quoted(head, end, sure) {
				s.Quote = nil
			}
		}
		return s
	}
	switch d := f.form.Delimiter; {
	case d != "" && (utf8.RuneCountInString(d) != 1 || d == "\n" || d == "\r"):
		return rows.Style{}, fmt.Errorf("delimiter is one character, such as \";\" or \"\\t\", not %q", d)
	case d != "":
		return rows.DetectStyle(head, end, of(d)), nil
	case f.form.Format == TSV:
		return rows.DetectStyle(head, end, of("\t"), of(","), of(";"), of("|")), nil
	}
	return rows.DetectStyle(head, end, of(","), of(";"), of("\t"), of("|")), nil
}

// checkDecoded refuses a row with bytes that are invalid in the file's encoding.
func (f *file) checkDecoded(row *Row) {
	if f.text != nil && f.text.Lossy() && row.Err == nil && strings.ContainsRune(row.ID+row.Text+row.Label+row.Context, utf8.RuneError) {
		row.Err = fmt.Errorf("it is not valid %s: mend it, or name another encoding", f.text.Encoding())
	}
}

// failed returns the error of a file that cannot be read to its end.
func (f *file) failed(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	if syntax := new(rows.SyntaxError); errors.As(err, &syntax) {
		return &FileError{Path: f.path, Line: syntax.Line, Column: syntax.Column, Err: err}
	}
	return f.errorAt(max(f.lines(), 1), err)
}
