package jsonrows

import (
	"bytes"
	"errors"

	"github.com/racflow/racflow/engine/source/lines"
)

// Row is a row as it is written.
type Row struct {
	Line int    // on which it starts
	Raw  []byte // valid until the next call of Next; nothing says that it is JSON
	Err  error  // set: the row cannot be used
}

// Lines reads a row from each line that is not blank.
type Lines struct{ in *lines.Reader }

// NewLines returns a reader of JSONL.
func NewLines(in *lines.Reader) *Lines { return &Lines{in} }

// Next returns the next row. It ends with io.EOF.
func (l *Lines) Next() (Row, error) {
	for {
		line, err := l.in.Next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			return Row{Line: l.in.Line(), Err: err}, nil
		case err != nil:
			return Row{}, err
		case len(bytes.TrimSpace(line)) > 0:
			return Row{Line: l.in.Line(), Raw: line}, nil
		}
	}
}
