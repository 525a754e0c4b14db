package delimited

import (
	"bytes"
	"fmt"
)

// quoting is how a line ends.
type quoting int

const (
	closed quoting = iota
	open           // in a quoted field
	broken         // there is a quote where none may be: the record ends here
)

// scan returns how a line ends, given how the one before it did, and whether it is this
// line that opens the field in which it ends.
func (s Style) scan(line []byte, before quoting) (after quoting, anew bool) {
	for state := before; ; {
		if state == closed {
			if !bytes.HasPrefix(line, s.Quote) {
				field, rest, more := bytes.Cut(line, s.Delimiter)
				if bytes.Contains(field, s.Quote) {
					return broken, false
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
			return broken, false
		}
	}
}

// unquote splits a whole record into its fields, which share one string.
func (r *Reader) unquote(record []byte) ([]string, error) {
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
