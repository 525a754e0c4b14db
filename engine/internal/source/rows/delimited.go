package rows

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// This file reads rows whose fields are separated by a delimiter: TSV, CSV and similar formats. Fields may be quoted as
// in RFC 4180, with any quote character. They may also have a backslash before quotes, delimiters, line ends and
// backslashes, as MySQL writes.
//
// Package encoding/csv knows only one quote character, and after an unclosed quote it reads the rest of the file as one
// field. Here, an unclosed quote costs one row.
//
// The package does not know what columns mean, nor how text is encoded: it gets UTF-8.

// Delimited splits a stream into records. A quote in the wrong place costs its line, not the rest of the file.
type Delimited struct {
	style   Style
	in      *Lines
	pending []physical // lines read ahead, to be read again

	// hide replaces escaped characters by bytes that no text has, since they are not UTF-8; show restores the
	// characters. nil: backslashes do not escape.
	hide, show *strings.Replacer

	unquoted []byte // the fields of a record, concatenated
	ends     []int  // end of each field
	wrapped  []bool // for each field, whether it is quoted
	fields   []string
}

// looked is how many records DetectStyle examines.
const looked = 100

// DetectStyle detects how fields are separated and escaped. head is the beginning of a file; it ends with a complete
// line if the file is longer. DetectStyle prefers the first candidate. Another candidate wins only if it splits the
// first line into several fields, and most other lines into as many, while the first candidate does not.
func DetectStyle(head []byte, end byte, candidates ...Style) Style {
	for i, c := range candidates {
		candidates[i].Escaped = escapes(head, end, c)
	}
	best, most := candidates[0], 0.0
	for i, c := range candidates {
		fields, share := consistent(head, end, c, looked)
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

// escapes reports whether backslashes escape: then more records have as many fields as the first record. Windows paths
// such as "C:\" escape nothing.
func escapes(head []byte, end byte, s Style) bool {
	if len(s.Quote) == 0 || !bytes.Contains(head, append([]byte{'\\'}, s.Delimiter...)) && !bytes.Contains(head, append([]byte{'\\'}, s.Quote...)) {
		return false
	}
	_, share := consistent(head, end, s, len(head))
	s.Escaped = true
	_, escaped := consistent(head, end, s, len(head))
	return escaped > share
}

// Quoted reports whether a file is quoted, if its format allows files without quoting. It examines the file's
// beginning. No quote may stand in a wrong place. All fields of some column must be quoted, or some field must need
// quotes. Quoting must not produce more records with too few or too many fields. Texts that begin with a quotation
// mark, or are quotations, prove nothing.
func Quoted(head []byte, end byte, s Style) bool {
	// The beginning of a long file may end within a field.
	for n := 0; n < 20 && len(head) > BufferSize/2 && bytes.Count(head, s.Quote)%2 == 1; n++ {
		head = head[:bytes.LastIndexByte(head[:len(head)-1], end)+1]
	}
	r := NewDelimited(NewLines(bufio.NewReader(bytes.NewReader(head)), end), s)
	var columns []bool // columns with only quoted fields so far
	needed, broken := false, false
	for record, err := r.Next(); err == nil; record, err = r.Next() {
		if record.Err != nil {
			return false
		}
		if columns == nil {
			columns = slices.Clone(r.wrapped)
		}
		for i, field := range record.Fields {
			if i < len(columns) && !r.wrapped[i] {
				columns[i] = false
			}
			broken = broken || strings.Contains(field, "\n")
			needed = needed || !s.Escaped && strings.ContainsAny(field, string(s.Quote)+string(s.Delimiter)+"\n")
		}
	}
	_, quoted := consistent(head, end, s, len(head))
	_, plain := consistent(head, end, Style{Delimiter: s.Delimiter}, len(head))
	return (needed || slices.Contains(columns, true)) && (quoted > plain || quoted == plain && !broken) // lines that fit alone are rows
}

// consistent returns the number of fields of the first record, and the share of up to n records that fit it.
func consistent(head []byte, end byte, s Style, n int) (fields int, share float64) {
	r := NewDelimited(NewLines(bufio.NewReader(bytes.NewReader(head)), end), s)
	first, err := r.Next()
	if err != nil || first.Err != nil {
		return 0, 0
	}
	names := slices.Clone(first.Fields)
	same, all := 1, 1
	for all < n {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if all++; err == nil && record.Err == nil && Fits(record.Fields, names) {
			same++
		}
	}
	return len(names), float64(same) / float64(all)
}

// Fits reports whether a record has a field for each name. Surplus fields or names must be empty: some programs end
// lines with a delimiter.
func Fits(fields, names []string) bool {
	n := min(len(fields), len(names))
	return !slices.ContainsFunc(slices.Concat(fields[n:], names[n:]), func(field string) bool { return strings.TrimSpace(field) != "" })
}

// unquote splits a complete record into its fields, which share one string.
func (r *Delimited) unquote(record []byte) ([]string, error) {
	q, d := r.style.Quote, r.style.Delimiter
	r.unquoted, r.ends, r.wrapped = r.unquoted[:0], r.ends[:0], r.wrapped[:0]
	for more := true; more; {
		var field []byte
		r.wrapped = append(r.wrapped, bytes.HasPrefix(record, q))
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
		} else if bytes.HasPrefix(record, []byte("\r")) {
			return nil, ErrMixedEnds
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
	Quote     []byte // empty: no quoting
	Escaped   bool   // a backslash makes the next quote, delimiter, line end or backslash literal
}

// Record is the fields of a row. It comes from one line, or from several if a quoted field contains line ends.
type Record struct {
	Line   int      // first line of the record
	Fields []string // valid until the next call of Next
	Err    error    // not nil: the row is unusable
	// Uncomputed and Cut are positions of cells of a sheet: Uncomputed of formulas without a value, Cut of numbers
	// whose last digits are missing in the file.
	Uncomputed, Cut []int
}

// NewDelimited returns a reader of records in a style.
func NewDelimited(in *Lines, s Style) *Delimited {
	r := &Delimited{style: s, in: in}
	if q, d := string(s.Quote), string(s.Delimiter); s.Escaped {
		r.hide = strings.NewReplacer(`\\`, "\xFF1", `\`+q, "\xFF2", `\`+d, "\xFF3", "\\\n", "\n")
		r.show = strings.NewReplacer("\xFF1", `\`, "\xFF2", q, "\xFF3", d)
	}
	return r
}

// Next returns the next record, and skips blank lines. It ends with io.EOF.
func (r *Delimited) Next() (Record, error) {
	if len(r.style.Quote) == 0 {
		return r.plain()
	}
	return r.quoted()
}

// plain reads a record without quoting.
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
	tooLong bool // text is missing
	end     bool // the file has ended
}

// quoted reads a record whose fields may be quoted.
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
	// A record ends when the number of its quotes is even, since quotes in a field are doubled.
	open := r.opens(first.text)
	whole := first.text
	if open {
		whole = bytes.Clone(whole) // the next line may overwrite it
	}
	var ahead []physical // lines after the first
	for open {
		p, err := r.read()
		if err != nil {
			return record, err
		}
		p.text = bytes.Clone(p.text)
		ahead = append(ahead, p)
		if p.tooLong || p.end || len(whole)+len(p.text) > MaxLine {
			record.Err = NeverClosed(first.line)
			break
		}
		whole = append(append(whole, '\n'), p.text...)
		open = open != r.opens(p.text)
	}
	if record.Err == nil {
		record.Fields, record.Err = r.unquote(r.escaped(whole))
	}
	for i, field := range record.Fields {
		if r.show != nil && field == `\N` {
			record.Fields[i] = "" // MySQL's mark of a missing value
		} else if r.show != nil {
			record.Fields[i] = r.show.Replace(field)
		}
	}
	if record.Err != nil && !r.style.Escaped && bytes.Contains(whole, append([]byte{'\\'}, r.style.Quote...)) {
		record.Err = fmt.Errorf("%w; a backslash before a quote counts only in a file whose first 64 KiB have more rows then", record.Err)
	}
	if record.Err != nil { // the quote that would close it may open a field of another row
		r.pending = append(ahead, r.pending...)
	}
	return record, nil
}

// opens reports whether a line opens a quoted field without closing it, or closes one without opening it.
func (r *Delimited) opens(line []byte) bool {
	return bytes.Count(r.escaped(line), r.style.Quote)%2 == 1
}

// escaped hides escaped characters.
func (r *Delimited) escaped(text []byte) []byte {
	if r.hide == nil {
		return text
	}
	return []byte(r.hide.Replace(string(text)))
}

// ErrMixedEnds says that a line holds several lines.
var ErrMixedEnds = errors.New("some lines end in CR, and some in LF: write the file with one line end for all")

// NeverClosed is the error of a row with an unclosed quote. line is the line of that quote.
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
