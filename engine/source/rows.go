package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/source/delimited"
	"github.com/racflow/racflow/engine/source/jsonrows"
)

// startCells makes rows of records whose first one may name the columns.
func (f *file) startCells(first delimited.Record, next func() (delimited.Record, error)) error {
	names := make([]string, len(first.Fields))
	headed := f.form.Header == nil || *f.form.Header
	for i, name := range first.Fields {
		if names[i] = strings.Clone(strings.TrimSpace(name)); !headed || names[i] == "" {
			names[i] = strconv.Itoa(i + 1)
			f.unnamed = append(f.unnamed, names[i])
		}
	}
	where := position(names, f.form.Where[0])
	if where < 0 && f.form.Where[0] != "" {
		return f.errorAt(first.Line, f.noWhere(names))
	}
	h, err := f.mapping.header(names)
	if errors.Is(err, errMissing) {
		err = f.missing(names)
	}
	if err != nil {
		return f.errorAt(first.Line, err)
	}
	f.columns, f.fields = func() []string { return h.names }, h.others()
	row := func(r *delimited.Record) (row Row) {
		if r.Err != nil {
			return Row{Line: r.Line, Err: r.Err}
		}
		row = h.row(r.Line, r.Fields)
		row.out = where >= 0 && (where >= len(r.Fields) || strings.TrimSpace(r.Fields[where]) != f.form.Where[1])
		f.checkDecoded(&row)
		return row
	}
	var ahead []Row
	if !headed {
		ahead = []Row{row(&first)}
	}
	f.next = func() (Row, error) {
		if len(ahead) > 0 {
			first := ahead[0]
			ahead = nil
			return first, nil
		}
		r, err := next()
		if err != nil {
			return Row{}, f.failed(err)
		}
		return row(&r), nil
	}
	return nil
}

// noWhere is the error of a file without the column that Form.Where names.
func (f *file) noWhere(names []string) error {
	return fmt.Errorf("there is no column %q, which where names; the columns are %s", f.form.Where[0], quoteAll(names))
}

// firstRows is how many rows of objects are looked at for the column with the text.
const firstRows = 20

// startObjects makes rows of objects or, where arrays says so, of arrays. A file none of
// whose first rows has a text is refused with advice, rather than all of its rows.
func (f *file) startObjects(next func() (jsonrows.Row, error), arrays bool) error {
	var members []jsonrows.Member
	var fields []Field
	return f.startFields(func() (int, []Field, error, error) {
		r, err := next()
		if err != nil {
			return 0, nil, nil, err
		}
		if r.Err == nil {
			members, r.Err = jsonrows.Members(members[:0], r.Raw, arrays)
		}
		fields = fields[:0]
		for _, m := range members {
			fields = append(fields, Field{m.Name, m.Value})
		}
		return r.Line, fields, r.Err, nil
	})
}

// startFields makes rows of the fields that next returns with their line, or with what is
// wrong with that row.
func (f *file) startFields(next func() (line int, fields []Field, invalid, err error)) error {
	o, where := f.mapping.object(), columnOf(f.form.Where[0])
	f.columns = func() []string { return slices.Clip(o.columns) }
	read := func() (Row, error) {
		line, fields, invalid, err := next()
		if err != nil {
			return Row{}, f.failed(err)
		}
		if invalid != nil {
			return Row{Line: line, Err: invalid}, nil //nolint:nilerr // the row fails alone
		}
		row := o.row(line, fields)
		if where.name != "" {
			value, _ := where.of(fields)
			text, _ := textOf(value, true)
			row.out = strings.TrimSpace(text) != f.form.Where[1]
		}
		f.checkDecoded(&row)
		return row, nil
	}
	var ahead []Row
	var failed error
	if f.patient {
		for len(ahead) < firstRows && failed == nil && !o.found {
			var row Row
			if row, failed = read(); failed == nil {
				ahead = append(ahead, row)
			}
		}
		if !f.mapping.look && !o.found && len(o.columns) > 0 {
			return f.errorAt(ahead[0].Line, f.missing(o.columns))
		}
		if len(ahead) == 0 && !errors.Is(failed, io.EOF) {
			return failed
		}
	}
	f.next = func() (Row, error) {
		if len(ahead) > 0 {
			row := ahead[0]
			ahead = ahead[1:]
			return row, nil
		}
		if failed != nil {
			return Row{}, failed
		}
		return read()
	}
	return nil
}
