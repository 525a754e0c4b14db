package result

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result/columnar"
	"github.com/racflow/racflow/engine/source"
)

// Input is what is known of the rows of an input before there are results.
type Input struct {
	// Columns are those beside id, text and label, in the order in which rows have them. nil:
	// there are none or, where Open is set, they are not known.
	Columns []InputColumn
	Labels  bool // rows may have labels
	Open    bool // rows may have other columns than Columns: they can be read only once
}

// InputColumn is a column of an input.
type InputColumn struct {
	Name string
	kind kind // of all values that were looked at
}

// maxColumns bounds how many columns of an input become columns of results: where rows have
// more, as where keys of JSON are data, they are Open.
const maxColumns = 1000

// Add looks at a row.
func (in *Input) Add(row source.Row) {
	in.Labels = in.Labels || row.Label != ""
	for i, f := range row.Fields {
		at := i
		if i >= len(in.Columns) || in.Columns[i].Name != f.Name {
			at = slices.IndexFunc(in.Columns, func(c InputColumn) bool { return c.Name == f.Name })
		}
		switch {
		case at >= 0:
			in.Columns[at].kind = in.Columns[at].kind.and(kindOf(f.Value))
		case len(in.Columns) == maxColumns:
			in.Open = true
		default:
			in.Columns = append(in.Columns, InputColumn{f.Name, kindOf(f.Value)})
		}
	}
}

// kind is what a type has room for. Values of an unknown kind are all nil.
type kind int

const (
	unknown kind = iota
	truth
	small  // whole numbers that a float64 holds, too
	whole  // whole numbers of 64 bits
	number // float64
	text
)

func kindOf(value any) kind {
	switch v := value.(type) {
	case nil:
		return unknown
	case bool:
		return truth
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		_, real := strconv.ParseFloat(v.String(), 64)
		switch {
		case err == nil && n >= -1<<53 && n <= 1<<53:
			return small
		case err == nil:
			return whole
		case real == nil && strings.ContainsAny(v.String(), ".eE"):
			return number
		}
	}
	return text
}

// and is a kind that has room for values of both.
func (k kind) and(other kind) kind {
	low, high := min(k, other), max(k, other)
	switch {
	case low == unknown || low == high, low == small && high == whole, low == small && high == number:
		return high
	}
	return text
}

func (k kind) columnar() columnar.Kind {
	switch k {
	case truth:
		return columnar.Truth
	case small, whole:
		return columnar.Whole
	case number:
		return columnar.Number
	}
	return columnar.Text
}

// typed is a value of a field as a column of a kind has it; one that has no room there is
// as it is, which a writer refuses.
func (k kind) typed(value any) any {
	n, isNumber := value.(json.Number)
	if isNumber && (k == small || k == whole) {
		if v, err := n.Int64(); err == nil {
			return v
		}
	}
	if isNumber && k == number {
		if v, err := n.Float64(); err == nil {
			return v
		}
	}
	value = plain(value)
	if v, ok := value.(bool); ok && k.columnar() == columnar.Text {
		return strconv.FormatBool(v)
	}
	return value
}

// See looks at a result of a run in the place of its row, which is not here.
func (in *Input) See(r outcome.Result) {
	in.Add(source.Row{Label: r.Expected, Fields: r.Fields})
}
