package packet

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/racflow/racflow/engine/source"
)

// Metadata and fields are lists of numbers, three for each value: those of the texts of its
// name and its value, and its type between them.
const (
	null = iota
	no
	yes
	text
	float    // as strconv has it, so that it may be none
	number   // json.Number
	document // json.RawMessage
)

func (w *writer) value(name string, value any) (all [3]int) {
	all[0] = w.text(name)
	kind, as := null, ""
	switch v := value.(type) {
	case nil:
	case bool:
		if kind = no; v {
			kind = yes
		}
	case string:
		kind, as = text, v
	case float64:
		kind, as = float, strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		kind, as = number, string(v)
	case json.RawMessage:
		kind, as = document, string(v)
	default: // nothing that racflow reads; outputs have it as JSON
		b, err := json.Marshal(value)
		if err != nil && w.err == nil {
			w.err = fmt.Errorf("%q cannot be sent to another machine: %w", name, err)
		}
		kind, as = document, string(b)
	}
	all[1], all[2] = kind, w.text(as)
	return all
}

// value is that of three numbers.
func (r *reader) value(from []int) (name string, value any) {
	name, as := r.text(from[0]), r.text(from[2])
	switch from[1] {
	case null:
	case no, yes:
		value = from[1] == yes
	case text:
		value = as
	case float:
		x, err := strconv.ParseFloat(as, 64)
		if err != nil {
			r.fail("%q is no number", as)
		}
		value = x
	case number:
		value = json.Number(as)
	case document:
		value = json.RawMessage(as)
	default:
		r.fail("there is no type %d", from[1])
	}
	return name, value
}

func (w *writer) fields(fields []source.Field) []int {
	return flat(fields, func(out []int, f source.Field) []int {
		one := w.value(f.Name, f.Value)
		return append(out, one[:]...)
	})
}

func (r *reader) fields(from []int) []source.Field {
	return unflat(r, "fields", from, 3, func(one []int) source.Field {
		name, value := r.value(one)
		return source.Field{Name: name, Value: value}
	})
}
