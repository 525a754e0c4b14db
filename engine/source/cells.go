package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// header maps the columns of a file whose first row names them to positions.
type header struct {
	names           []string
	id, text, label int // -1: not there
	context, gold   int
	meta            []int
	fields          []int // that are not mapped; nil: nobody wants to know
	look            bool
}

// errMissing says that there is no column with the text.
var errMissing = errors.New("there is no column with the text")

func (m Mapping) header(names []string) (header, error) {
	for i, name := range names {
		if slices.Index(names, name) < i {
			return header{}, fmt.Errorf("two columns are named %q: rename one of them", name)
		}
	}
	h := header{
		names: names, look: m.look,
		id: position(names, m.ID), text: position(names, m.Text), label: position(names, m.Label),
		context: position(names, m.Context), gold: position(names, m.Gold),
	}
	if h.text < 0 && !m.look {
		return h, errMissing
	}
	if m.Context != "" && h.context < 0 {
		return h, fmt.Errorf("there is no column %q, which context names; the columns are %s", m.Context, quoteAll(names))
	}
	for i := range names {
		taken := i == h.id || i == h.text || i == h.label
		if m.Fields && !taken {
			h.fields = append(h.fields, i)
		}
		if m.Meta == nil && !taken && i != h.context && i != h.gold {
			h.meta = append(h.meta, i)
		}
	}
	for _, name := range m.Meta {
		i := position(names, name)
		if i < 0 {
			return h, fmt.Errorf("there is no column %q, which meta names; the columns are %s", name, quoteAll(names))
		}
		h.meta = append(h.meta, i)
	}
	return h, nil
}

// others are the names of the fields that rows have.
func (h header) others() []string {
	all := make([]string, len(h.fields))
	for to, i := range h.fields {
		all[to] = h.names[i]
	}
	return all
}

// position is that of a column which is given by its name or, where none has that name, by
// its position from 1 on; -1: there is none, or none is given.
func position(names []string, column string) int {
	if column == "" {
		return -1
	}
	i := slices.Index(names, column)
	if n, err := strconv.Atoi(column); i < 0 && err == nil && n > 0 && n <= len(names) {
		return n - 1
	}
	return i
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

// row makes a row of the fields of one that is written.
func (h *header) row(line int, fields []string) (row Row) {
	row.Line = line
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
	} else {
		row.Err = cmp.Or(row.Err, fmt.Errorf("%q: %w", h.names[h.gold], err))
	}
	for _, i := range h.meta {
		if v := at(i); v != "" {
			if row.Meta == nil {
				row.Meta = sdk.Meta{}
			}
			row.Meta[h.names[i]] = v
		}
	}
	if len(h.fields) > 0 {
		row.Fields = make([]Field, len(h.fields))
		for to, i := range h.fields {
			row.Fields[to] = Field{h.names[i], at(i)}
		}
	}
	if !h.look {
		check(&row)
	}
	return row
}
