package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/knowledge/rows"
	"github.com/racflow/racflow/sdk"
)

// header maps the columns of a file whose first row names them to positions.
type header struct {
	names           []string
	id, text, label int // -1: no such column
	context, gold   int
	meta            []int
	fields          []int // positions of unmapped columns; nil: not wanted
	levels          []int // of the columns that hold the levels of a label
	labels          Labels
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
		names: names, look: m.look, labels: m.Labels,
		id: position(names, m.ID), text: position(names, m.Text), label: position(names, m.Label),
		context: position(names, m.Context), gold: position(names, m.Gold),
	}
	if h.text < 0 && !m.look {
		return h, errMissing
	}
	if m.Context != "" && h.context < 0 {
		return h, fmt.Errorf("there is no column %q, which context names; the columns are %s", m.Context, quoteAll(names))
	}
	for _, name := range m.Labels.Columns {
		i := position(names, name)
		if i < 0 && !m.look {
			return h, fmt.Errorf("there is no column %q, which level_columns names; the columns are %s", name, quoteAll(names))
		}
		h.levels = append(h.levels, i)
	}
	for i := range names {
		taken := i == h.id || i == h.text || i == h.label || slices.Contains(h.levels, i)
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

// others returns the names of the unmapped columns.
func (h header) others() []string {
	all := make([]string, len(h.fields))
	for to, i := range h.fields {
		all[to] = h.names[i]
	}
	return all
}

// position returns the index of a column given by its name or, if no column has that name, by its
// position from 1 on; -1: there is none, or none is given.
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

// row makes a Row from the fields of a record.
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
	row.ID, row.Text, row.Context = at(h.id), at(h.text), at(h.context)
	var err error
	if h.levels != nil {
		levels := make([]string, len(h.levels))
		for i, column := range h.levels {
			levels[i] = at(column)
		}
		row.Label, err = h.labels.path(levels)
	} else if h.label >= 0 {
		row.Label, err = h.labels.text(h.names[h.label], at(h.label))
	}
	row.Err = cmp.Or(row.Err, err)
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

// object maps the members of rows that are objects, any of which may be missing.
type object struct {
	id, text, label, context, gold column
	meta                           []column // columns kept as metadata; empty if all is set
	all                            bool     // all unmapped members are metadata
	fields, look                   bool
	labels                         Labels
	levels                         []column
	found                          bool // some row had the column with the text

	columns []string // of the rows so far
	known   map[string]bool
}

// column is a mapped column: a member, or a path into one.
type column struct {
	name string
	path rows.JSONPath
}

func (m Mapping) object() *object {
	o := &object{all: m.Meta == nil, fields: m.Fields, look: m.look, labels: m.Labels, known: map[string]bool{}}
	for to, name := range map[*column]string{&o.id: m.ID, &o.text: m.Text, &o.label: m.Label, &o.context: m.Context, &o.gold: m.Gold} {
		*to = columnOf(name)
	}
	for _, name := range m.Meta {
		o.meta = append(o.meta, columnOf(name))
	}
	for _, name := range m.Labels.Columns {
		o.levels = append(o.levels, columnOf(name))
	}
	return o
}

func columnOf(name string) column {
	c := column{name: name}
	if name != "" {
		c.path = rows.ParseJSONPath(name)
	}
	return c
}

// of returns the value of a column, and the index of the member with exactly that value; -1: the
// value is a part of a member, or there is none.
func (c column) of(row []Field) (value any, member int) {
	if c.name == "" {
		return nil, -1
	}
	at := func(name string) int { return slices.IndexFunc(row, func(f Field) bool { return f.Name == name }) }
	if i := at(c.name); i >= 0 {
		return row[i].Value, i
	}
	if i := at(c.path.First()); i >= 0 {
		if raw, ok := row[i].Value.(json.RawMessage); ok {
			if found := c.path.In(raw); found != nil {
				return found, -1
			}
		}
	}
	return nil, -1
}

// row makes a Row from members: either strings, numbers and booleans, or all of them as JSON.
func (o *object) row(line int, members []Field) Row {
	row := Row{Line: line}
	taken := make([]int, 5, 5+len(o.levels))
	take := func(n int, c column, numbers bool) (text string) {
		var value any
		value, taken[n] = c.of(members)
		text, ok := textOf(value, numbers)
		if !ok {
			row.Err = fmt.Errorf("%q is not a string", c.name)
		}
		return text
	}
	row.ID, row.Text = take(0, o.id, true), take(1, o.text, false)
	var label any
	label, taken[2] = o.label.of(members)
	if o.levels == nil {
		row.Label, row.Err = o.labels.labelOf(o.label.name, label, row.Err)
	} else {
		levels := make([]string, len(o.levels))
		for i, c := range o.levels {
			taken = append(taken, 0)
			levels[i] = take(len(taken)-1, c, true)
		}
		var err error
		row.Label, err = o.labels.path(levels)
		row.Err = cmp.Or(row.Err, err)
	}
	o.found = o.found || taken[1] >= 0 || row.Text != ""
	row.Context = take(3, o.context, false)
	var gold any
	gold, taken[4] = o.gold.of(members)
	var err error
	if row.Gold, err = goldOfAny(gold); err != nil {
		row.Err = cmp.Or(row.Err, fmt.Errorf("%q: %w", o.gold.name, err))
	}
	keep := func(name string, value any) {
		v, err := metaOf(value)
		if err != nil {
			row.Err = fmt.Errorf("%q cannot be kept as metadata: %w", name, err)
		}
		if v != nil {
			if row.Meta == nil {
				row.Meta = sdk.Meta{}
			}
			row.Meta[name] = v
		}
	}
	for i, m := range members {
		if !o.known[m.Name] && len(o.columns) < maxColumns {
			name := strings.Clone(m.Name)
			o.known[name], o.columns = true, append(o.columns, name)
		}
		if o.all && !slices.Contains(taken, i) {
			keep(m.Name, m.Value)
		}
		if o.fields && !slices.Contains(taken[:3], i) && !slices.Contains(taken[5:], i) {
			row.Fields = append(row.Fields, Field{m.Name, decoded(m.Value)})
		}
	}
	for _, c := range o.meta {
		if v, _ := c.of(members); v != nil {
			keep(c.name, v)
		}
	}
	if !o.look {
		check(&row)
	}
	return row
}

// maxColumns is how many columns are remembered if each row has columns of its own.
const maxColumns = 10_000

// textOf returns a value as text: a string or, with numbers, a number as it is spelt: an id may
// have more digits than a float64.
func textOf(value any, numbers bool) (text string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return string(v), numbers
	case json.RawMessage:
		switch {
		case string(v) == "null":
			return "", true
		case v[0] == '"':
			return text, json.Unmarshal(v, &text) == nil
		case numbers && strings.IndexByte("-0123456789", v[0]) >= 0:
			return string(v), true
		}
	}
	return "", false
}

// goldOfAny parses the passages in a value.
func goldOfAny(value any) ([]Gold, error) {
	switch v := value.(type) {
	case json.RawMessage:
		return goldOfJSON(v)
	case string:
		return goldOf(v)
	case json.Number:
		return goldOf(string(v))
	}
	return nil, nil
}

// metaOf returns a value as metadata: a string, a float64 or a bool; nil for any other value.
func metaOf(value any) (any, error) {
	switch v := value.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		return v.Float64()
	case json.RawMessage:
		if len(v) > 0 && (v[0] == '{' || v[0] == '[') {
			return nil, nil
		}
		var scalar any
		err := json.Unmarshal(v, &scalar)
		return scalar, err
	}
	return nil, nil
}

// decoded returns the value of a Field, and decodes JSON unless it is nested.
func decoded(value any) any {
	raw, ok := value.(json.RawMessage)
	if !ok {
		return value
	}
	switch c := raw[0]; c {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text) // it is valid
		return text
	case 't', 'f':
		return c == 't'
	case 'n':
		return nil
	case '{', '[':
		return slices.Clone(raw)
	}
	return json.Number(raw)
}
