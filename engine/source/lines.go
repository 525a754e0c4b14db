package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// lines splits a stream at newlines without ever holding more than MaxRow
// bytes of a line.
type lines struct {
	in *bufio.Reader
	n  int // lines returned so far
}

// next returns a line without its end; errTooLong for one above MaxRow, of
// which the rest is skipped.
func (l *lines) next() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.in.ReadSlice('\n')
		if !tooLong {
			if tooLong = len(line)+len(part) > MaxRow; !tooLong {
				line = append(line, part...)
			}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF && len(line) == 0 && !tooLong {
			return nil, io.EOF
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		l.n++
		if tooLong {
			return nil, errTooLong
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// header maps column names to positions.
type header struct {
	names           []string
	id, text, label int // -1: not there
	context, gold   int
	meta            []int
}

func (r *Reader) header(names []string) (header, error) {
	for i, name := range names {
		if slices.Index(names, name) < i {
			return header{}, r.fileError(1, 1, fmt.Errorf("two columns are named %q", name))
		}
	}
	m := r.mapping
	h := header{
		names: names,
		id:    slices.Index(names, m.ID), text: slices.Index(names, m.Text), label: slices.Index(names, m.Label),
		context: mapped(names, m.Context), gold: mapped(names, m.Gold),
	}
	if h.text < 0 {
		return h, r.fileError(1, 1, fmt.Errorf("there is no column %q: the first line must name the columns, and it reads %s. "+
			"Add a header line, or name the column that holds the text in the source block", m.Text, quoteAll(names)))
	}
	if m.Context != "" && h.context < 0 {
		return h, r.fileError(1, 1, fmt.Errorf("there is no column %q, which context names; the columns are %s", m.Context, quoteAll(names)))
	}
	for i, name := range names {
		taken := i == h.id || i == h.text || i == h.label || i == h.context || i == h.gold
		if m.Meta == nil && !taken || slices.Contains(m.Meta, name) {
			h.meta = append(h.meta, i)
		}
	}
	for _, name := range m.Meta {
		if !slices.Contains(names, name) {
			return h, r.fileError(1, 1, fmt.Errorf("there is no column %q, which meta names; the columns are %s", name, quoteAll(names)))
		}
	}
	return h, nil
}

// mapped is the position of a column that need not be mapped.
func mapped(names []string, column string) int {
	if column == "" {
		return -1
	}
	return slices.Index(names, column)
}

func quoteAll(names []string) string {
	quoted := make([]string, 0, 8)
	for i, name := range names {
		if i == 8 {
			return strings.Join(quoted, ", ") + " and more"
		}
		if len(name) > 40 {
			name = name[:40] + "..."
		}
		quoted = append(quoted, strconv.Quote(name))
	}
	return strings.Join(quoted, ", ")
}

func (h header) row(line int, fields []string) Row {
	row := Row{Line: line}
	if len(fields) != len(h.names) {
		row.Err = fmt.Errorf("it has %d fields where the header has %d", len(fields), len(h.names))
	}
	at := func(i int) string {
		if i < 0 || i >= len(fields) {
			return ""
		}
		return fields[i]
	}
	row.ID, row.Text, row.Label, row.Context = at(h.id), at(h.text), at(h.label), at(h.context)
	if gold, err := goldOf(at(h.gold)); err == nil {
		row.Gold = gold
	} else if row.Err == nil {
		row.Err = fmt.Errorf("%q: %w", h.names[h.gold], err)
	}
	for _, i := range h.meta {
		if v := at(i); v != "" {
			if row.Meta == nil {
				row.Meta = sdk.Meta{}
			}
			row.Meta[h.names[i]] = v
		}
	}
	return check(row)
}

func (r *Reader) startTSV(in *bufio.Reader) error {
	l := &lines{in: in}
	first, err := l.next()
	if err != nil {
		return r.fileError(1, 1, err)
	}
	h, err := r.header(strings.Split(string(first), "\t"))
	if err != nil {
		return err
	}
	r.next = l.rows(func(line []byte) Row { return h.row(l.n, strings.Split(string(line), "\t")) })
	return nil
}

func (r *Reader) startJSONL(in *bufio.Reader) {
	l := &lines{in: in}
	r.next = l.rows(func(line []byte) Row { return r.jsonRow(l.n, line) })
}

// rows makes a row of each line that is not blank.
func (l *lines) rows(parse func(line []byte) Row) func() (Row, error) {
	return func() (Row, error) {
		for {
			line, err := l.next()
			switch {
			case errors.Is(err, errTooLong):
				return Row{Line: l.n, Err: err}, nil
			case err != nil:
				return Row{}, err
			case len(bytes.TrimSpace(line)) > 0:
				return parse(line), nil
			}
		}
	}
}

func (r *Reader) jsonRow(n int, line []byte) Row {
	row := Row{Line: n}
	if !utf8.Valid(line) {
		row.Err = errNotUTF8
		return row
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			row.Err = fmt.Errorf("column %d: it is not JSON: %w", syntax.Offset, err)
		} else {
			row.Err = errors.New("it is not a JSON object")
		}
		return row
	}
	// Numbers stay as they are written: an id may have more digits than a
	// float64.
	take := func(name string, numbers bool) (text string) {
		raw := string(object[name])
		delete(object, name)
		switch {
		case raw == "" || raw == "null":
		case raw[0] == '"' && json.Unmarshal([]byte(raw), &text) == nil:
		case numbers && strings.ContainsAny(raw[:1], "-0123456789"):
			return raw
		default:
			row.Err = fmt.Errorf("%q is not a string", name)
		}
		return text
	}
	row.ID, row.Text, row.Label = take(r.mapping.ID, true), take(r.mapping.Text, false), take(r.mapping.Label, true)
	if name := r.mapping.Context; name != "" {
		row.Context = take(name, false)
	}
	if name := r.mapping.Gold; name != "" {
		var err error
		if row.Gold, err = goldOfJSON(object[name]); err != nil && row.Err == nil {
			row.Err = fmt.Errorf("%q: %w", name, err)
		}
		delete(object, name)
	}
	for name, raw := range object {
		if r.mapping.Meta != nil && !slices.Contains(r.mapping.Meta, name) {
			continue
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			row.Err = fmt.Errorf("%q cannot be kept as metadata: %w", name, err)
		}
		switch v.(type) {
		case string, float64, bool:
			if row.Meta == nil {
				row.Meta = sdk.Meta{}
			}
			row.Meta[name] = v
		}
	}
	return check(row)
}
