package output

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// This file writes rows as Apache Parquet.
//
// It collects rows into row groups, so that memory does not grow with the file. The footer is
// written last: if a process ends before Close, the file is not valid Parquet, and cannot be
// mistaken for complete.
//
// This file knows only columns and values; the rest of the package gives them meaning.

// message is the root of a schema. It keeps the order of fields, which a parquet.Group sorts by
// name.
type message struct {
	parquet.Group
	fields []parquet.Field
}

func (m message) Fields() []parquet.Field { return m.fields }

func newMessage(columns []Column) message {
	m := message{Group: parquet.Group{}}
	for _, c := range columns {
		m.Group[c.Name] = c.node()
	}
	named := map[string]parquet.Field{}
	for _, f := range m.Group.Fields() {
		named[f.Name()] = f
	}
	for _, c := range columns {
		m.fields = append(m.fields, named[c.Name])
	}
	return m
}

func (c Column) node() parquet.Node {
	node := parquet.String()
	switch c.Kind {
	case BoolColumn:
		node = parquet.Leaf(parquet.BooleanType)
	case IntColumn:
		node = parquet.Leaf(parquet.Int64Type)
	case FloatColumn:
		node = parquet.Leaf(parquet.DoubleType)
	}
	if c.Optional {
		node = parquet.Optional(node)
	}
	return node
}

// ColumnKind is the type of a column's values.
type ColumnKind int

// Kinds of columns, with the types of their values in Go and in Parquet.
const (
	TextColumn  ColumnKind = iota // string: a byte array annotated as a string
	BoolColumn                    // bool: a boolean
	IntColumn                     // int64: a 64-bit integer
	FloatColumn                   // float64: a double
)

// Column is a column of rows.
type Column struct {
	Name     string
	Kind     ColumnKind
	Optional bool // values may be nil
}

// Limits of a row group, in rows and in bytes of values: a group is held in memory until it is
// complete.
const (
	groupRows  = 100_000
	groupBytes = 32 << 20
)

// ParquetWriter writes rows.
type ParquetWriter struct {
	file    *parquet.GenericWriter[any]
	columns []Column
	row     parquet.Row
	rows    int
	bytes   int
}

// NewParquetWriter returns a writer of rows with at least one column. Names of columns must differ.
func NewParquetWriter(w io.Writer, columns []Column) *ParquetWriter {
	return &ParquetWriter{
		file: parquet.NewGenericWriter[any](w, parquet.NewSchema("result", newMessage(columns)),
			parquet.Compression(&parquet.Snappy), parquet.CreatedBy("racflow", "", "")),
		columns: columns,
	}
}

// Write writes a row: one value per column, in order.
func (w *ParquetWriter) Write(values []any) error {
	w.row = w.row[:0]
	for i, v := range values {
		value, err := w.columns[i].value(v)
		if err != nil {
			return err
		}
		present := 0
		if w.columns[i].Optional && v != nil {
			present = 1
		}
		w.row = append(w.row, value.Level(0, present, i))
		w.bytes += 8
		if text, ok := v.(string); ok {
			w.bytes += len(text)
		}
	}
	if _, err := w.file.WriteRows([]parquet.Row{w.row}); err != nil {
		return err
	}
	if w.rows++; w.rows < groupRows && w.bytes < groupBytes {
		return nil
	}
	w.rows, w.bytes = 0, 0
	return w.file.Flush()
}

// Close completes the file.
func (w *ParquetWriter) Close() error { return w.file.Close() }

func (c Column) value(v any) (parquet.Value, error) {
	switch v := v.(type) {
	case nil:
		if c.Optional {
			return parquet.NullValue(), nil
		}
	case string:
		if c.Kind == TextColumn {
			return parquet.ByteArrayValue([]byte(v)), nil
		}
	case bool:
		if c.Kind == BoolColumn {
			return parquet.BooleanValue(v), nil
		}
	case int64:
		if c.Kind == IntColumn {
			return parquet.Int64Value(v), nil
		}
	case float64:
		if c.Kind == FloatColumn {
			return parquet.DoubleValue(v), nil
		}
	}
	return parquet.Value{}, fmt.Errorf("column %q has no room for the value %v", c.Name, v)
}
