package source

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

func (r *Reader) startCSV(in *bufio.Reader) error {
	records := &records{in: &lines{in: in}}
	first, err := records.next()
	if err != nil {
		return r.csvHeaderError(1, err)
	}
	var parse parser
	if first.err != nil {
		return r.csvHeaderError(first.line, first.err)
	}
	names, err := parse.fields(first.text)
	if err != nil {
		return r.csvHeaderError(first.line, err)
	}
	h, err := r.header(names)
	if err != nil {
		return err
	}
	r.next = func() (Row, error) {
		record, err := records.next()
		if err != nil {
			return Row{}, err
		}
		return parse.row(h, record), nil
	}
	return nil
}

func (r *Reader) csvHeaderError(line int, err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return r.fileError(line+bad.Line-1, bad.Column, bad.Err)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the file has no header line")
	}
	return r.fileError(line, 1, err)
}

// records splits a CSV file into records before they are parsed, so that a
// quote that is never closed costs one row and not the rest of the file.
type records struct {
	in      *lines
	pending []physical // lines read ahead, to be read again
}

// physical is a line of the file, without its end.
type physical struct {
	line    int
	text    []byte
	tooLong bool // there is no text
	end     bool // nor a line
}

// record is a row as it is written: one line, or several where a quoted field
// holds line ends.
type record struct {
	line int
	text []byte
	err  error
}

func (r *records) next() (record, error) {
	first, err := r.read()
	for err == nil && !first.tooLong && !first.end && len(first.text) == 0 {
		first, err = r.read()
	}
	whole := record{line: first.line, text: first.text}
	switch {
	case err != nil:
		return record{}, err
	case first.end:
		return record{}, io.EOF
	case first.tooLong:
		whole.err = errTooLong
		return whole, nil
	}
	var ahead []physical // since the line on which the quote opened
	opened := first.line
	for state, _ := quotes(first.text, closed); state == open; {
		p, err := r.read()
		if err != nil {
			return record{}, err
		}
		ahead = append(ahead, p)
		var anew bool
		state, anew = quotes(p.text, open)
		if p.tooLong || p.end || state == broken || len(whole.text)+len(p.text) > MaxRow {
			// The quote that closes it may well be the opening one of another row.
			r.pending = append(ahead, r.pending...)
			whole.err = neverClosed(opened)
			return whole, nil
		}
		whole.text = append(append(whole.text, '\n'), p.text...)
		if anew {
			opened, ahead = p.line, nil
		}
	}
	return whole, nil
}

func neverClosed(line int) error {
	return fmt.Errorf("the quote that opens a field on line %d is never closed, or not within %d bytes; "+
		"close it, or quote the whole field and double each quote in it", line, MaxRow)
}

// quoting is how a line ends.
type quoting int

const (
	closed quoting = iota
	open           // in a quoted field
	broken         // there is a quote where none may be: the record ends here
)

// quotes returns how a line ends, given how the one before it did, and whether
// it is this line that opens the field in which it ends.
func quotes(line []byte, before quoting) (after quoting, anew bool) {
	for state := before; ; {
		if state == closed {
			if len(line) == 0 || line[0] != '"' {
				field, rest, more := bytes.Cut(line, []byte{','})
				if bytes.IndexByte(field, '"') >= 0 {
					return broken, false
				}
				if !more {
					return closed, false
				}
				line = rest
				continue
			}
			line, anew = line[1:], true
		}
		end := bytes.IndexByte(line, '"')
		if end < 0 {
			return open, anew
		}
		line = line[end+1:]
		switch {
		case len(line) == 0:
			return closed, false
		case line[0] == '"':
			state = open
		case line[0] == ',':
			state = closed
		default:
			return broken, false
		}
		line = line[1:]
	}
}

func (r *records) read() (physical, error) {
	if len(r.pending) > 0 {
		p := r.pending[0]
		r.pending = r.pending[1:]
		return p, nil
	}
	text, err := r.in.next()
	p := physical{line: r.in.n, text: text, tooLong: errors.Is(err, errTooLong), end: errors.Is(err, io.EOF)}
	if p.tooLong || p.end {
		err = nil
	}
	return p, err
}

// parser splits records into fields.
type parser struct {
	text bytes.Reader
	csv  *csv.Reader
}

func (p *parser) row(h header, r record) Row {
	if r.err != nil {
		return Row{Line: r.line, Err: r.err}
	}
	fields, err := p.fields(r.text)
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return Row{Line: r.line, Err: bad.Err} // its line counts from the record
	case err != nil:
		return Row{Line: r.line, Err: err}
	}
	return h.row(r.line, fields)
}

func (p *parser) fields(record []byte) ([]string, error) {
	p.text.Reset(record)
	if p.csv == nil {
		p.csv = csv.NewReader(&p.text)
		p.csv.FieldsPerRecord = -1 // checked per row, so that one bad row fails alone
	}
	fields, err := p.csv.Read()
	if err != nil {
		p.csv = nil // it may hold the rest of the record
	}
	return fields, err
}
