package source

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
)

func (r *Reader) startCSV(in *bufio.Reader) error {
	c := csv.NewReader(in)
	c.FieldsPerRecord = -1 // checked per row, so that one bad row fails alone
	names, err := c.Read()
	if err != nil {
		return r.csvHeaderError(err)
	}
	h, err := r.header(names)
	if err != nil {
		return err
	}
	r.next = func() (Row, error) {
		fields, err := c.Read()
		var bad *csv.ParseError
		switch {
		case errors.As(err, &bad):
			return Row{Line: bad.StartLine, Fault: bad.Err}, nil
		case err != nil:
			return Row{}, err
		}
		line, _ := c.FieldPos(0)
		size := 0
		for _, f := range fields {
			size += len(f)
		}
		if size > MaxRow {
			return Row{Line: line, Fault: errTooLong}, nil
		}
		return h.row(line, fields), nil
	}
	return nil
}

func (r *Reader) csvHeaderError(err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return r.fileError(bad.Line, bad.Column, bad.Err)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the file has no header line")
	}
	return r.fileError(1, 1, err)
}
