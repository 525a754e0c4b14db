package columnar

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Kind is what a column holds.
type Kind int

// Kinds of columns, with the types of their values in Go and in Parquet.
const (
	Text   Kind = iota // string: a byte array that is annotated as a string
	Truth              // bool: a boolean
	Whole              // int64: a 64-bit integer
	Number             // float64: a double
)

// Column is a column of rows.
type Column struct {
	Name     string
	Kind     Kind
	Optional bool // values may be nil
}

// A row group ends where it has so many rows, or so many bytes of values: it is held in
// memory until then.
const (
	groupRows  = 100_000
	groupBytes = 32 << 20
)

// Writer writes rows.
type Writer struct {
	file    *parquet.GenericWriter[any]
	columns []Column
	row     parquet.Row
	rows    int
	bytes   int
}

// NewWriter returns a writer of rows with some columns, of which there is at least one. Their
// names differ.
func NewWriter(w io.Writer, columns []Column) *Writer {
	return &Writer{
		file: parquet.NewGenericWriter[any](w, parquet.NewSchema("result", newMessage(columns)),
			parquet.Compression(&parquet.Snappy), parquet.CreatedBy("racflow", "", "")),
		columns: columns,
	}
}

// Write writes a row: a value for each column, in their order.
func (w *Writer) Write(values []any) error {
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
func (w *Writer) Close() error { return w.file.Close() }

func (c Column) value(v any) (parquet.Value, error) {
	switch v := v.(type) {
	case nil:
		if c.Optional {
			return parquet.NullValue(), nil
		}
	case string:
		if c.Kind == Text {
			return parquet.ByteArrayValue([]byte(v)), nil
		}
	case bool:
		if c.Kind == Truth {
			return parquet.BooleanValue(v), nil
		}
	case int64:
		if c.Kind == Whole {
			return parquet.Int64Value(v), nil
		}
	case float64:
		if c.Kind == Number {
			return parquet.DoubleValue(v), nil
		}
	}
	return parquet.Value{}, fmt.Errorf("column %q has no room for the value %v", c.Name, v)
}
