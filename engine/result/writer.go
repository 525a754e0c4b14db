package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result/columnar"
)

// Writer writes results one by one.
type Writer interface {
	Write(outcome.Result) error
	// Flush hands on what was written so far, as far as the format allows it.
	Flush() error
	// Close completes what was written. What it is written to stays open.
	Close() error
}

// Options say which results are written and how.
type Options struct {
	// Columns are those that results have, in this order, and the keys of their JSON; nil:
	// all that Columns of this package lists, and JSON as a Result has it.
	Columns []string
	Input   Input // what the rows have beside their results
	// Compression is how what is written is compressed, GZ or ZST; empty: it is not.
	Compression string
	// Live makes Flush hand on compressed results at once, as who reads a pipe expects. What
	// is written then depends on when Flush is called.
	Live bool
	More string // what a table says of where the results are that it leaves out
}

// NewWriter returns a writer of one of Formats. The error says that there is no such format,
// or no such column.
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

// stream writes each result by itself.
type stream struct {
	*bufio.Writer
	packed packer
	header func() error // what stands before the results; nil: nothing, or it is written
	write  func(*row) error
}

func (s *stream) Write(r outcome.Result) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.write(&row{r, Of(r, nil)})
}

func (s *stream) begin() error {
	header := s.header
	if header == nil {
		return nil
	}
	s.header = nil
	return header()
}

func (s *stream) Flush() error {
	if err := s.Writer.Flush(); err != nil {
		return err
	}
	return s.packed.Flush()
}

func (s *stream) Close() error {
	return errors.Join(s.begin(), s.Writer.Flush(), s.packed.Close())
}

// writeJSON returns what writes results as lines of JSON: whole, or some of their columns.
func writeJSON(w io.Writer, columns []column, some bool) func(*row) error {
	if !some {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return func(r *row) error { return enc.Encode(r.result) }
	}
	o := newObject()
	return func(r *row) error {
		o.begin()
		for _, c := range columns {
			if err := o.add(c.Name, c.value(r)); err != nil {
				return err
			}
		}
		_, err := w.Write(append(o.bytes(), '\n'))
		return err
	}
}

// parquetWriter writes results as rows of a Parquet file, which is complete with Close.
type parquetWriter struct {
	*stream
	columns []column
	rows    *columnar.Writer
	cells   []any
}

func newParquet(s *stream, columns []column) *parquetWriter {
	p := &parquetWriter{stream: s, columns: columns, cells: make([]any, len(columns))}
	typed := make([]columnar.Column, len(columns))
	for i, c := range columns {
		typed[i] = c.Column
	}
	p.rows = columnar.NewWriter(s.Writer, typed)
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
