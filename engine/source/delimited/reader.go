package delimited

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/source/lines"
)

// Style is how fields are separated and quoted.
type Style struct {
	Delimiter []byte
	Quote     []byte // empty: nothing is quoted
}

// Record is a row as it is written: one line, or several where a quoted field holds line
// ends.
type Record struct {
	Line   int      // on which it starts
	Fields []string // valid until the next call of Next
	Err    error    // set: the row cannot be used
}

// Reader splits a stream into records. A quote that is never closed costs one record and
// not the rest of the file.
type Reader struct {
	style   Style
	in      *lines.Reader
	pending []physical // lines read ahead, to be read again

	unquoted []byte // the fields of a record, one after the other
	ends     []int  // where each ends
	fields   []string
}

// New returns a Reader.
func New(in *lines.Reader, s Style) *Reader { return &Reader{style: s, in: in} }

// Next returns the next record. Blank lines are skipped. It ends with io.EOF.
func (r *Reader) Next() (Record, error) {
	if len(r.style.Quote) == 0 {
		return r.plain()
	}
	return r.quoted()
}

// plain reads a record in which nothing is quoted.
func (r *Reader) plain() (Record, error) {
	for {
		line, err := r.in.Next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			return Record{Line: r.in.Line(), Err: err}, nil
		case err != nil:
			return Record{}, err
		case len(bytes.TrimSpace(line)) > 0:
			return Record{Line: r.in.Line(), Fields: r.cut(line)}, nil
		}
	}
}

// cut splits a line at each delimiter. The fields share one string.
func (r *Reader) cut(line []byte) []string {
	text, delimiter := string(line), string(r.style.Delimiter)
	r.fields = r.fields[:0]
	for {
		n := strings.Index(text, delimiter)
		if n < 0 {
			r.fields = append(r.fields, text)
			return r.fields
		}
		r.fields = append(r.fields, text[:n])
		text = text[n+len(delimiter):]
	}
}

// physical is a line of the file, without its end.
type physical struct {
	line    int
	text    []byte
	tooLong bool // there is no text
	end     bool // nor a line
}

// quoted reads a record in which fields may be quoted.
func (r *Reader) quoted() (Record, error) {
	first, err := r.read()
	for err == nil && !first.tooLong && !first.end && len(first.text) == 0 {
		first, err = r.read()
	}
	record := Record{Line: first.line}
	switch {
	case err != nil:
		return record, err
	case first.end:
		return record, io.EOF
	case first.tooLong:
		record.Err = lines.ErrTooLong
		return record, nil
	}
	whole := first.text
	state, _ := r.style.scan(first.text, closed)
	if state == open {
		whole = bytes.Clone(whole) // the next line may take its place
	}
	var ahead []physical // since the line on which the quote opened
	opened := first.line
	for state == open {
		p, err := r.read()
		if err != nil {
			return record, err
		}
		p.text = bytes.Clone(p.text)
		ahead = append(ahead, p)
		var anew bool
		state, anew = r.style.scan(p.text, open)
		if p.tooLong || p.end || state == broken || len(whole)+len(p.text) > lines.Max {
			// The quote that closes it may well be the opening one of another row.
			r.pending = append(ahead, r.pending...)
			record.Err = NeverClosed(opened)
			return record, nil
		}
		whole = append(append(whole, '\n'), p.text...)
		if anew {
			opened, ahead = p.line, nil
		}
	}
	record.Fields, record.Err = r.unquote(whole)
	return record, nil
}

// NeverClosed is the error of a row in which a quote opens on a line.
func NeverClosed(line int) error {
	return fmt.Errorf("the quote that opens a field on line %d is never closed, or not within %d bytes; "+
		"close it, or quote the whole field and double each quote in it", line, lines.Max)
}

func (r *Reader) read() (physical, error) {
	if len(r.pending) > 0 {
		p := r.pending[0]
		r.pending = r.pending[1:]
		return p, nil
	}
	text, err := r.in.Next()
	p := physical{line: r.in.Line(), text: text, tooLong: errors.Is(err, lines.ErrTooLong), end: errors.Is(err, io.EOF)}
	if p.tooLong || p.end {
		err = nil
	}
	return p, err
}
