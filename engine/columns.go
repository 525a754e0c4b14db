package engine

import (
	"errors"
	"io"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/source"
)

// Columns says what the rows of the input have beside their ids and texts, for formats of
// results that begin with it. Where the file does not begin with the names of its columns, or
// types are asked for, all rows are read. An input that can be read only once is opened, and
// none of its rows is read.
func (p *Pipeline) Columns(types bool) (result.Input, error) {
	rows, err := p.Rows()
	if err != nil {
		return result.Input{}, err
	}
	names, known := rows.Fields()
	if !p.rereadable() {
		p.opened = rows
		in := result.Input{Labels: true, Open: !known}
		in.Add(source.Row{Fields: unknown(names)})
		return in, nil
	}
	defer rows.Close() //nolint:errcheck // it was only read
	var in result.Input
	in.Add(source.Row{Fields: unknown(names)})
	for types || !known || !in.Labels {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in, err
		}
		in.Add(row)
	}
	return in, nil
}

// unknown are fields whose values nobody has seen.
func unknown(names []string) []source.Field {
	all := make([]source.Field, len(names))
	for i, name := range names {
		all[i].Name = name
	}
	return all
}

// Reaches reports whether a run over the input can have at least so many results. Of an input
// that can be read only once nobody knows.
func (p *Pipeline) Reaches(n int64) (bool, error) {
	if !p.rereadable() {
		return true, nil
	}
	err := p.look(func(source.Row) bool {
		n--
		return n > 0
	})
	return n <= 0, err
}
