package rows

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// This file reads rows whose fields are separated by a delimiter: TSV, CSV and
// their many relatives. Fields may be quoted as in RFC 4180, with a quote of any sort.
//
// Package encoding/csv takes one kind of quote, and after a quote that is never closed
// it reads the rest of the file as one field. Here, that costs one row.
//
// The package does not know what columns mean, nor how text is encoded: it gets UTF-8.

// looked is how many records of the beginning of a file are looked at.
const looked = 100

// DetectStyle finds out how the fields of a file are separated by how it begins, which is cut
// after a whole line if there is more of it. The first of the candidates is expected: another
// takes its place only where it cuts the first line into several fields, and most of the
// others into as many, and the expected one does not.
func DetectStyle(head []byte, end byte, candidates ...Style) Style {
	best, most := candidates[0], 0.0
	for i, c := range candidates {
		fields, share := consistent(head, end, c)
		switch {
		case fields < 2:
		case i == 0 && share >= 0.8:
			return c
		case share >= 0.5 && share+float64(min(fields, 100))/1e4 > most:
			best, most = c, share+float64(min(fields, 100))/1e4
		}
	}
	return best
}

// consistent is how many fields the first record has, and the share of records that have as
// many.
func consistent(head []byte, end byte, s Style) (fields int, share float64) {
	r := NewDelimited(NewLines(bufio.NewReader(bytes.NewReader(head)), end), s)
	first, err := r.Next()
	if err != nil || first.Err != nil {
		return 0, 0
	}
	fields = len(first.Fields)
	same, all := 1, 1
	for all < looked {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if all++; err == nil && record.Err == nil && len(record.Fields) == fields {
			same++
		}
	}
	return fields, float64(same) / float64(all)
}

// quoting is how a line ends.
type quoting int

const (
	closed      quoting = iota
	open                // in a quoted field
	brokenQuote         // there is a quote where none may be: the record ends here
)

// scan returns how a line ends, given how the one before it did, and whether it is this
// line that opens the field in which it ends.
func (s Style) scan(line []byte, before quoting) (after quoting, anew bool) {
	for state := before; ; {
		if state == closed {
			if !bytes.HasPrefix(line, s.Quote) {
				field, rest, more := bytes.Cut(line, s.Delimiter)
				if bytes.Contains(field, s.Quote) {
					return brokenQuote, false
				}
				if !more {
					return closed, false
				}
				line = rest
				continue
			}
			line, anew = line[len(s.Quote):], true
		}
		end := bytes.Index(line, s.Quote)
		if end < 0 {
			return open, anew
		}
		line = line[end+len(s.Quote):]
		switch {
		case len(line) == 0:
			return closed, false
		case bytes.HasPrefix(line, s.Quote):
			state, line = open, line[len(s.Quote):]
		case bytes.HasPrefix(line, s.Delimiter):
			state, line = closed, line[len(s.Delimiter):]
		default:
			return brokenQuote, false
		}
	}
}

// unquote splits a whole record into its fields, which share one string.
func (r *Delimited) unquote(record []byte) ([]string, error) {
	q, d := r.style.Quote, r.style.Delimiter
	r.unquoted, r.ends = r.unquoted[:0], r.ends[:0]
	for more := true; more; {
		var field []byte
		if !bytes.HasPrefix(record, q) {
			field, record, more = bytes.Cut(record, d)
			if bytes.Contains(field, q) {
				return nil, fmt.Errorf("bare %s in non-quoted-field; quote the whole field and double each quote in it", q)
			}
			r.unquoted = append(r.unquoted, field...)
			r.ends = append(r.ends, len(r.unquoted))
			continue
		}
		record = record[len(q):]
		for {
			field, record, _ = bytes.Cut(record, q)
			r.unquoted = append(r.unquoted, field...)
			if !bytes.HasPrefix(record, q) {
				break
			}
			r.unquoted = append(r.unquoted, q...)
			record = record[len(q):]
		}
		r.ends = append(r.ends, len(r.unquoted))
		if more = bytes.HasPrefix(record, d); more {
			record = record[len(d):]
		} else if len(record) > 0 {
			return nil, fmt.Errorf("extraneous or missing %s in quoted-field; double each quote in it", q)
		}
	}
	text, start := string(r.unquoted), 0
	r.fields = r.fields[:0]
	for _, end := range r.ends {
		r.fields = append(r.fields, text[start:end])
		start = end
	}
	return r.fields, nil
}

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

// Delimited splits a stream into records. A quote that is never closed costs one record and
// not the rest of the file.
type Delimited struct {
	style   Style
	in      *Lines
	pending []physical // lines read ahead, to be read again

	unquoted []byte // the fields of a record, one after the other
	ends     []int  // where each ends
	fields   []string
}

// NewDelimited returns a Reader.
func NewDelimited(in *Lines, s Style) *Delimited { return &Delimited{style: s, in: in} }

// Next returns the next record. Blank lines are skipped. It ends with io.EOF.
func (r *Delimited) Next() (Record, error) {
	if len(r.style.Quote) == 0 {
		return r.plain()
	}
	return r.quoted()
}

// plain reads a record in which nothing is quoted.
func (r *Delimited) plain() (Record, error) {
	for {
		line, err := r.in.Next()
		switch {
		case errors.Is(err, ErrLineTooLong):
			return Record{Line: r.in.Line(), Err: err}, nil
		case err != nil:
			return Record{}, err
		case len(bytes.TrimSpace(line)) > 0:
			return Record{Line: r.in.Line(), Fields: r.cut(line)}, nil
		}
	}
}

// cut splits a line at each delimiter. The fields share one string.
func (r *Delimited) cut(line []byte) []string {
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
func (r *Delimited) quoted() (Record, error) {
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
		record.Err = ErrLineTooLong
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
		if p.tooLong || p.end || state == brokenQuote || len(whole)+len(p.text) > MaxLine {
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
		"close it, or quote the whole field and double each quote in it", line, MaxLine)
}

func (r *Delimited) read() (physical, error) {
	if len(r.pending) > 0 {
		p := r.pending[0]
		r.pending = r.pending[1:]
		return p, nil
	}
	text, err := r.in.Next()
	p := physical{line: r.in.Line(), text: text, tooLong: errors.Is(err, ErrLineTooLong), end: errors.Is(err, io.EOF)}
	if p.tooLong || p.end {
		err = nil
	}
	return p, err
}
