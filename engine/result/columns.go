package result

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result/columnar"
	"github.com/racflow/racflow/engine/source"
)

// row is an item with its result.
type row struct {
	item   outcome.Result
	result Result
}

// column is a column of results. Values are nil where there is nothing to say.
type column struct {
	columnar.Column
	chosen bool             // it is there only where it is asked for
	value  func(r *row) any // as JSON has it
	plain  func(r *row) any // in formats without nesting: a string, bool, float64 or nil; nil: value
	typed  func(r *row) any // as Column.Kind has it; nil: plain
}

func (c column) flat(r *row) any {
	if c.plain != nil {
		return c.plain(r)
	}
	return c.value(r)
}

func (c column) cell(r *row) any {
	if c.typed != nil {
		return c.typed(r)
	}
	return c.flat(r)
}

// own are the columns that are racflow's, in their order.
var own = []column{
	{Column: columnar.Column{Name: "id"}, value: func(r *row) any { return r.result.ID }},
	{Column: columnar.Column{Name: "text"}, value: func(r *row) any { return r.result.Text }},
	optional("expected", func(r *row) any { return filled(r.result.Expected) }),
	optional("answer", func(r *row) any { return filled(string(r.result.Answer)) }),
	{Column: columnar.Column{Name: "agreement", Kind: columnar.Number}, value: func(r *row) any { return r.result.Agreement }},
	{Column: columnar.Column{Name: "confidence", Kind: columnar.Number, Optional: true}, value: func(r *row) any {
		if r.result.Confidence == 0 { // the election does not estimate it
			return nil
		}
		return r.result.Confidence
	}},
	optional("runner_up", func(r *row) any { return filled(r.result.RunnerUp) }),
	{Column: columnar.Column{Name: "flagged", Kind: columnar.Truth}, value: func(r *row) any { return r.result.Flagged }},
	optional("reason", func(r *row) any { return filled(r.result.Reason) }),
	nested("error", func(r *row) any { return set(r.result.Error, r.result.Error != nil) }, func(r *row) any {
		if r.item.Failure == nil {
			return nil
		}
		return fmt.Sprintf("%s: %v", r.item.Place(), r.item.Failure)
	}),
	nested("citations", func(r *row) any { return set(r.result.Citations, r.result.Citations != nil) },
		func(r *row) any { return filled(cited(r.item.Citations)) }),
	nested("candidates", func(r *row) any { return set(r.result.Candidates, r.result.Candidates != nil) }, func(r *row) any {
		var ids []string
		for _, c := range r.result.Candidates {
			ids = append(ids, c.ID)
		}
		return filled(strings.Join(ids, "; "))
	}),
	nested("missing", func(r *row) any { return set(r.result.Missing, r.result.Missing != nil) },
		func(r *row) any { return filled(strings.Join(r.result.Missing, "; ")) }),
	decided(),
	encoded("votes", func(r *row) any { return r.result.Votes }),
	encoded("fields", func(r *row) any { return set(r.result.Fields, r.result.Fields != nil) }),
}

func optional(name string, value func(*row) any) column {
	return column{Column: columnar.Column{Name: name, Optional: true}, value: value}
}

func nested(name string, value, plain func(*row) any) column {
	return column{Column: columnar.Column{Name: name, Optional: true}, value: value, plain: plain}
}

// encoded is a column that is JSON in formats without nesting, too.
func encoded(name string, value func(*row) any) column {
	return column{Column: columnar.Column{Name: name, Optional: true}, chosen: true, value: value, plain: func(r *row) any {
		v := value(r)
		if v == nil {
			return nil
		}
		o := newObject()
		if err := o.enc.Encode(v); err != nil {
			return err.Error() // results are made of nothing that cannot be encoded
		}
		return strings.TrimSuffix(o.buffer.String(), "\n")
	}}
}

// decided is the column of who decided an answer, which few runs need.
func decided() column {
	c := nested("decided", func(r *row) any { return set(r.result.Decided, r.result.Decided != nil) }, func(r *row) any {
		if r.result.Decided == nil {
			return nil
		}
		return r.result.Decided.String()
	})
	c.chosen = true
	return c
}

func filled(text string) any { return set(text, text != "") }

func set(value any, is bool) any {
	if !is {
		return nil
	}
	return value
}

// prefix is put before the name of an input's column that one of racflow's has.
const prefix = "input_"

// of is a column of the input. Rows of a file with columns have it at the same place.
func (in InputColumn) of(name string, place int) column {
	find := func(r *row) any {
		fields := r.item.Fields
		if place < len(fields) && fields[place].Name == in.Name {
			return fields[place].Value
		}
		if at := slices.IndexFunc(fields, func(f source.Field) bool { return f.Name == in.Name }); at >= 0 {
			return fields[at].Value
		}
		return nil
	}
	return column{
		Column: columnar.Column{Name: name, Kind: in.kind.columnar(), Optional: true},
		value:  find, plain: func(r *row) any { return plain(find(r)) }, typed: func(r *row) any { return in.kind.typed(find(r)) },
	}
}

// columns returns the columns that results have, of those that there are.
func (o Options) columns() ([]column, error) {
	taken := map[string]bool{"": true}
	for _, c := range own {
		taken[c.Name] = true
	}
	all := slices.Clone(own)
	for i, c := range o.Input.Columns {
		name := c.Name
		for taken[strings.ToLower(name)] {
			name = prefix + name
		}
		taken[strings.ToLower(name)] = true
		all = append(all, c.of(name, i))
	}
	if o.Columns == nil {
		return slices.DeleteFunc(all, func(c column) bool {
			return c.Name == "expected" && !o.Input.Labels || c.chosen && !(c.Name == "fields" && o.Input.Open)
		}), nil
	}
	if len(o.Columns) == 0 {
		return nil, fmt.Errorf("name at least one column of %s", list(all))
	}
	var chosen []column
	for _, name := range o.Columns {
		at := slices.IndexFunc(all, func(c column) bool { return c.Name == name })
		switch {
		case slices.ContainsFunc(chosen, func(c column) bool { return c.Name == name }):
			return nil, fmt.Errorf("the column %q is named twice", name)
		case at >= 0:
			chosen = append(chosen, all[at])
		case o.Input.Open && name != "":
			field, prefixed := strings.CutPrefix(name, prefix)
			if !prefixed || !taken[strings.ToLower(field)] {
				field = name
			}
			chosen = append(chosen, InputColumn{field, text}.of(name, 0))
		default:
			return nil, fmt.Errorf("there is no column %q: name some of %s", name, list(all))
		}
	}
	return chosen, nil
}

func list(all []column) string {
	names := make([]string, len(all))
	for i, c := range all {
		if names[i] = c.Name; strings.ContainsAny(c.Name, ", \"\t\n") {
			quoted, _ := json.Marshal(c.Name) // a string always can be
			names[i] = string(quoted)
		}
	}
	return strings.Join(names, ", ")
}
