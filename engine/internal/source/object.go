package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

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

// errMissing says that there is no column with the text.
var errMissing = errors.New("there is no column with the text")

// object maps the members of rows: members of objects, any of which may be missing, or the cells of a table.
type object struct {
	id, text, label, context, gold column
	meta                           []column // columns kept as metadata; empty if all is set
	all                            bool     // all unmapped members are metadata
	fields, look                   bool
	labels                         Labels
	levels                         []column
	found                          bool // some row had the column with the text
	cells                          bool // all rows have the same columns with texts as values; empty values count as missing

	columns []string // of the rows so far
	known   map[string]bool
}

// column is a mapped column: a member, or a path into one.
type column struct {
	name string
	path rows.JSONPath
	at   int // position of a cell; -1: the member is searched by its name
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

// cells maps the cells of a table with named columns.
func (m Mapping) cells(names []string) (*object, error) {
	for i, name := range names {
		if slices.Index(names, name) < i {
			return nil, fmt.Errorf("two columns are named %q: rename one of them", name)
		}
	}
	o := m.object()
	o.cells, o.columns = true, names
	find := func(c *column, argument string) error {
		if c.at = position(names, c.name); c.at >= 0 {
			c.name = names[c.at]
		} else if argument != "" && c.name != "" {
			return fmt.Errorf("there is no column %q, which %s names; the columns are %s", c.name, argument, quoteAll(names))
		}
		return nil
	}
	for _, c := range []*column{&o.id, &o.text, &o.label, &o.gold} {
		_ = find(c, "") // rows may lack all columns but the text
	}
	if o.text.at < 0 && !m.look {
		return nil, errMissing
	}
	err := find(&o.context, "context")
	for i := range o.levels {
		err = cmp.Or(err, find(&o.levels[i], "level_columns"))
	}
	for i := range o.meta {
		err = cmp.Or(err, find(&o.meta[i], "meta"))
	}
	return o, err
}

// others returns the names of the columns in each row's Row.Fields.
func (o *object) others() []string {
	names := []string{}
	for i, name := range o.columns {
		is := func(c column) bool { return c.at == i }
		if o.fields && !is(o.id) && !is(o.text) && !is(o.label) && !slices.ContainsFunc(o.levels, is) {
			names = append(names, name)
		}
	}
	return names
}

// uses reports whether a column is mapped by its name.
func (o *object) uses(i int) bool {
	return slices.ContainsFunc(slices.Concat([]column{o.id, o.text, o.label, o.context, o.gold}, o.levels, o.meta), func(c column) bool { return c.at == i })
}

func columnOf(name string) column {
	c := column{name: name, at: -1}
	if name != "" {
		c.path = rows.ParseJSONPath(name)
	}
	return c
}

// of returns the value of a column, and the index of the member with exactly that value; -1: the value is part
// of a member, or there is none.
func (c column) of(row []result.Field) (value any, member int) {
	if c.name == "" {
		return nil, -1
	}
	if c.at >= 0 && c.at < len(row) {
		return row[c.at].Value, c.at
	}
	at := func(name string) int {
		return slices.IndexFunc(row, func(f result.Field) bool { return f.Name == name })
	}
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

// row makes a Row from members. Members are either strings, numbers and booleans, or all JSON. It keeps an
// earlier error of the row.
func (o *object) row(line int, members []result.Field, err error) Row {
	row := Row{Line: line, Err: err}
	taken := make([]int, 5, 5+len(o.levels))
	take := func(n int, c column, numbers bool) (text string) {
		var value any
		value, taken[n] = c.of(members)
		text, ok := textOf(value, numbers)
		if !ok {
			row.Err = notString(c.name, value)
		}
		return text
	}
	row.ID, row.Text = take(0, o.id, true), take(1, o.text, false)
	var label any
	label, taken[2] = o.label.of(members)
	if o.levels == nil {
		row.Label, row.respelt, row.Err = o.labels.labelOf(o.label.name, label, row.Err)
	} else {
		levels := make([]string, len(o.levels))
		for i, c := range o.levels {
			taken = append(taken, 0)
			levels[i] = take(len(taken)-1, c, true)
		}
		row.respelt = o.labels.respelt(levels)
		row.Label, err = o.labels.path(levels)
		row.Err = cmp.Or(row.Err, err)
	}
	o.found = o.found || taken[1] >= 0 || row.Text != ""
	row.Context = take(3, o.context, false)
	var gold any
	gold, taken[4] = o.gold.of(members)
	if row.Gold, err = goldOfAny(gold); err != nil {
		row.Err = cmp.Or(row.Err, fmt.Errorf("%q: %w", o.gold.name, err))
	}
	keep := func(name string, value any) {
		if o.cells && value == "" {
			return
		}
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
		if !o.cells && !o.known[m.Name] && len(o.columns) < maxColumns {
			name := strings.Clone(m.Name)
			o.known[name], o.columns = true, append(o.columns, name)
		}
		if o.all && !slices.Contains(taken, i) {
			keep(m.Name, m.Value)
		}
		if o.fields && !slices.Contains(taken[:3], i) && !slices.Contains(taken[5:], i) {
			row.Fields = append(row.Fields, result.Field{Name: m.Name, Value: decoded(m.Value)})
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

// textOf returns a value as text: a string or, with numbers, true, false or a number in its own spelling, since
// an id may have more digits than a float64.
func textOf(value any, numbers bool) (text string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return string(v), numbers
	case bool:
		return strconv.FormatBool(v), numbers
	case json.RawMessage:
		switch {
		case string(v) == "null":
			return "", true
		case v[0] == '"':
			return text, json.Unmarshal(v, &text) == nil
		case numbers && strings.IndexByte("-0123456789tf", v[0]) >= 0:
			return string(v), true
		}
	}
	return "", false
}

// notString returns the error of a value that is not a string. For an object or a list it proposes a path into
// it.
func notString(name string, value any) error {
	raw, _ := value.(json.RawMessage)
	l := looker{columns: map[string]*looked{}, several: map[string]bool{}}
	if l.add(name, raw, 0); len(l.order) == 0 || l.order[0] == name {
		return fmt.Errorf("%q is not a string", name)
	}
	is := map[byte]string{'{': "an object", '[': "a list"}[raw[0]]
	return fmt.Errorf("%q is not a string but %s: name a value in it, such as %q, in place of %[1]q", name, is, l.order[0])
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

// decoded returns the value of a field. It decodes JSON unless the JSON is nested.
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
