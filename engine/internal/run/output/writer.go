package output

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Writer writes results one by one.
type Writer interface {
	Write(outcome.Result) error
	// Flush passes on the results written so far, as far as format and compression allow.
	Flush() error
	// Close completes the output, but does not close the underlying writer.
	Close() error
}

// Place returns where a candidate comes from: path:lines, or path and pages; if it is not part of a
// document, its id.
func Place(c sdk.Candidate) string {
	place, _ := c.Meta["path"].(string)
	if place == "" {
		place = c.ID
	}
	if lines, _ := span(c.Meta, "line"); lines != "" {
		return place + ":" + lines
	}
	switch pages, several := span(c.Meta, "page"); {
	case several:
		place += ", pages " + pages
	case pages != "":
		place += ", page " + pages
	}
	return place
}

// span returns the range of a candidate's lines or pages; empty: unknown.
func span(m sdk.Meta, unit string) (text string, several bool) {
	first, ok := m["first_"+unit].(float64)
	last, _ := m["last_"+unit].(float64)
	switch {
	case !ok:
		return "", false
	case last <= first:
		return fmt.Sprint(int(first)), false
	}
	return fmt.Sprintf("%d-%d", int(first), int(last)), true
}

// cited lists citations as [1] guide.md:3-9; [4] notes.md:1-2.
func cited(citations []outcome.Citation) string {
	all := make([]string, len(citations))
	for i, c := range citations {
		all[i] = fmt.Sprintf("[%d] %s", c.Number, Place(c.Passage))
	}
	return strings.Join(all, "; ")
}

// cells returns the texts of a row in the columns; r is nil for the header.
func cells(columns []column, r *row) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		if r == nil {
			all[i] = c.Name
			continue
		}
		switch v := c.flat(r).(type) {
		case string:
			all[i] = strings.ToValidUTF8(v, "\uFFFD")
		case bool:
			all[i] = strconv.FormatBool(v)
		case float64:
			all[i] = strconv.FormatFloat(v, 'f', 4, 64)
		}
	}
	return all
}

// writeTSV writes a line, with texts escaped by terminal.Escape.
func writeTSV(w *bufio.Writer, columns []column, r *row) error {
	all := cells(columns, r)
	for i := range all {
		all[i] = terminal.Escape(all[i])
	}
	_, err := w.WriteString(strings.Join(all, "\t") + "\n")
	return err
}

// csvWriter writes records by RFC 4180, with lines that end in a line feed. It leaves texts
// unchanged: a spreadsheet may take a text that begins with = for a formula.
type csvWriter struct {
	to  io.Writer
	csv *csv.Writer
}

func newCSV(to *bufio.Writer) *csvWriter { return &csvWriter{to, csv.NewWriter(to)} }

func (w *csvWriter) write(columns []column, r *row) error {
	all := cells(columns, r)
	if len(all) == 1 && all[0] == "" { // an empty line would not be a record
		_, err := io.WriteString(w.to, "\"\"\n")
		return err
	}
	if err := w.csv.Write(all); err != nil {
		return err
	}
	w.csv.Flush() // into the buffer
	return w.csv.Error()
}

// Options say which results are written and how.
type Options struct {
	// Columns selects the columns and their order, also for the keys of JSON. nil: JSON has the
	// whole Result, other formats have all columns that need not be named.
	Columns []string
	Input   Input // describes the rows
	// Compression is GZ or ZST; empty: none.
	Compression string
	More        string // where to find the results that a table leaves out; the table says so
}

// NewWriter returns a writer of one of Formats. It fails for an unknown format or column.
func NewWriter(w io.Writer, format string, o Options) (Writer, error) {
	columns, err := o.columns()
	if err != nil {
		return nil, err
	}
	packed, err := pack(w, format, o)
	if err != nil {
		return nil, err
	}
	s := &stream{Writer: bufio.NewWriterSize(packed, 64<<10), packed: packed}
	switch format {
	case JSONL:
		s.write = writeJSON(s.Writer, columns, o.Columns != nil)
	case TSV:
		s.header = func() error { return writeTSV(s.Writer, columns, nil) }
		s.write = func(r *row) error { return writeTSV(s.Writer, columns, r) }
	case CSV:
		out := newCSV(s.Writer)
		s.header = func() error { return out.write(columns, nil) }
		s.write = func(r *row) error { return out.write(columns, r) }
	case Parquet:
		return newParquet(s, columns), nil
	case Table:
		return &table{w: s.Writer, hint: o.More}, nil
	default:
		return nil, unknownFormat(format)
	}
	return s, nil
}

// stream writes each result separately.
type stream struct {
	*bufio.Writer
	packed io.WriteCloser
	header func() error // writes the lines before the results; nil: none, or already written
	write  func(*row) error
}

func (s *stream) Write(r outcome.Result) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.write(&row{r, Of(r)})
}

func (s *stream) begin() error {
	header := s.header
	if header == nil {
		return nil
	}
	s.header = nil
	return header()
}

func (s *stream) Close() error {
	return errors.Join(s.begin(), s.Writer.Flush(), s.packed.Close())
}

// writeJSON returns a function that writes results as lines of JSON: whole results, or some of
// their columns.
func writeJSON(w io.Writer, columns []column, some bool) func(*row) error {
	if !some {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return func(r *row) error { return enc.Encode(r.result) }
	}
	object := make(result.Fields, len(columns))
	return func(r *row) error {
		for i, c := range columns {
			object[i] = result.Field{Name: c.Name, Value: c.value(r)}
		}
		line, err := object.MarshalJSON()
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		return err
	}
}

// parquetWriter writes results as rows of a Parquet file, which Close completes.
type parquetWriter struct {
	*stream
	columns []column
	rows    *ParquetWriter
	cells   []any
}

func newParquet(s *stream, columns []column) *parquetWriter {
	p := &parquetWriter{stream: s, columns: columns, cells: make([]any, len(columns))}
	typed := make([]Column, len(columns))
	for i, c := range columns {
		typed[i] = c.Column
	}
	p.rows = NewParquetWriter(s.Writer, typed)
	s.write = func(r *row) error {
		for i, c := range columns {
			p.cells[i] = c.cell(r)
		}
		return p.rows.Write(p.cells)
	}
	return p
}

func (p *parquetWriter) Flush() error { return nil }

func (p *parquetWriter) Close() error {
	if err := p.rows.Close(); err != nil {
		return fmt.Errorf("complete the Parquet file: %w", err)
	}
	return p.stream.Close()
}
