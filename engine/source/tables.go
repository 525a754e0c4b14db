package source

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/racflow/racflow/engine/source/decode"
	"github.com/racflow/racflow/engine/source/delimited"
	"github.com/racflow/racflow/engine/source/table"
)

// tableOf is the format of a file that is read at any place and not as a stream; empty: it is
// text. Its name says so, or how it begins.
func tableOf(f Format, in *os.File) Format {
	var head [4]byte
	n, _ := in.ReadAt(head[:], 0)
	_, packed := decode.Packed(head[:n])
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

// at counts what is read at any place.
type at struct {
	in io.ReaderAt
	n  *atomic.Int64
}

func (a at) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.in.ReadAt(p, off)
	a.n.Add(int64(n))
	return n, err
}

// startTable makes a Parquet file or a workbook ready to return rows.
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

// startParquet makes the rows of a Parquet file objects, since their values may be nested.
func (f *file) startParquet(in io.ReaderAt, size int64) error {
	p, err := table.OpenParquet(in, size)
	if err != nil {
		return f.errorAt(1, err)
	}
	f.lines, f.close = p.Row, both(p.Close, f.close)
	names := p.Columns()
	fields := make([]Field, len(names))
	err = f.startFields(func() (int, []Field, error, error) {
		values, err := p.Next()
		for i, v := range values {
			fields[i] = Field{names[i], v}
		}
		return p.Row(), fields, nil, err
	})
	f.columns = func() []string { return names }
	if err == nil && !f.mapping.look && f.mapping.position(names) < 0 {
		return f.errorAt(1, f.missing(names)) // there are no rows
	}
	return err
}

// position is that of the column with the text, or of the one that a path to it begins with.
func (m Mapping) position(names []string) int {
	if i := position(names, m.Text); i >= 0 {
		return i
	}
	return slices.Index(names, columnOf(m.Text).path.First())
}

// startWorkbook makes the cells of a sheet rows.
func (f *file) startWorkbook(in io.ReaderAt, size int64, read *atomic.Int64) error {
	w, err := table.OpenWorkbook(in, size, f.form.Sheet)
	if err != nil {
		return f.errorAt(1, err)
	}
	read.Add(size) // it is unpacked as a whole
	f.form.Sheet = w.Sheet()
	w.Skip(f.form.HeaderRow - 1)
	f.lines, f.close = w.Row, both(w.Close, f.close)
	next := func() (delimited.Record, error) {
		cells, err := w.Next()
		r := delimited.Record{Line: w.Row(), Fields: cells}
		return r, err
	}
	first, err := next()
	if err != nil {
		return f.errorAt(1, err)
	}
	return f.startCells(first, next)
}

// both closes a file after what reads it.
func both(first, then func() error) func() error {
	return func() error { return errors.Join(first(), then()) }
}

// Sheets are the names of the sheets of a workbook.
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
	w, err := table.OpenWorkbook(in, info.Size(), "")
	if err != nil {
		return nil, err
	}
	defer w.Close() //nolint:errcheck // it was only read
	return w.Sheets(), nil
}
