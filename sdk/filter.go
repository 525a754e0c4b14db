package sdk

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Filter selects entries of a collection by their id, label and metadata. It
// is a tree: And, Or and Not combine Parts, the other operators compare one
// field with Values.
//
// A comparison matches an entry whose field has a value of the same type for which it is true.
// Metadata that is missing or of another type match no comparison, so Not of a comparison
// matches such entries. Strings are compared by their bytes.
type Filter struct {
	Op     FilterOp
	Parts  []Filter // And, Or: any number, none selects all or nothing; Not: one
	Field  Field
	Key    string // of the metadata, where Field is FieldMeta
	Values []any  // string, float64 or bool; one, but for In
}

// FilterOp is what a node of a Filter does.
type FilterOp uint8

// The operators of a Filter. Only strings and numbers have an order, only
// strings a prefix.
const (
	FilterAnd FilterOp = iota + 1
	FilterOr
	FilterNot
	FilterIn // the field is one of the values
	FilterLess
	FilterLessEqual
	FilterGreater
	FilterGreaterEqual
	FilterPrefix
)

// Field is what a Filter compares.
type Field uint8

// The fields of an entry that a Filter sees. ID and label are strings; an
// entry without a label has the empty one.
const (
	FieldID Field = iota + 1
	FieldLabel
	FieldMeta
)

// MaxFilterDepth bounds the nesting of filters, so that recursion over one from another
// process is safe.
const MaxFilterDepth = 32

// Check reports what is wrong with a filter. The other methods, and stores,
// take only checked ones.
func (f *Filter) Check() error { return f.check(MaxFilterDepth) }

func (f *Filter) check(depth int) error {
	if depth == 0 {
		return fmt.Errorf("a filter nests more than %d deep", MaxFilterDepth)
	}
	if f.Op <= FilterNot {
		if f.Op == 0 || f.Op == FilterNot && len(f.Parts) != 1 || f.Field != 0 || f.Key != "" || len(f.Values) > 0 {
			return fmt.Errorf("a filter's node of type %d with %d parts, field %d and %d values", f.Op, len(f.Parts), f.Field, len(f.Values))
		}
		for i := range f.Parts {
			if err := f.Parts[i].check(depth - 1); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case f.Op > FilterPrefix, f.Field < FieldID, f.Field > FieldMeta, f.Op != FilterIn && len(f.Values) != 1, len(f.Parts) > 0,
		f.Field != FieldMeta && f.Key != "":
		return fmt.Errorf("a filter's comparison of type %d with field %d and %d values", f.Op, f.Field, len(f.Values))
	}
	for _, v := range f.Values {
		number, isNumber := v.(float64)
		_, isBool := v.(bool)
		_, isString := v.(string)
		switch {
		case !isNumber && !isBool && !isString:
			return fmt.Errorf("a filter compares with a %T: use a string, a number or a bool", v)
		case math.IsNaN(number):
			return fmt.Errorf("a filter compares with NaN")
		case f.Field != FieldMeta && !isString:
			return fmt.Errorf("a filter compares the %s with %v: it is a string", f.name(), v)
		case f.Op != FilterIn && isBool, f.Op == FilterPrefix && !isString:
			return fmt.Errorf("a filter's %s does not go with %v", strings.TrimSpace(operators[f.Op]), v)
		}
	}
	return nil
}

// Match reports whether a filter selects an entry. Every store has to agree with it. A nil
// filter selects all.
func (f *Filter) Match(id, label string, meta Meta) bool {
	if f == nil {
		return true
	}
	match := func(part Filter) bool { return part.Match(id, label, meta) }
	switch f.Op {
	case FilterAnd:
		return !slices.ContainsFunc(f.Parts, func(p Filter) bool { return !match(p) })
	case FilterOr:
		return slices.ContainsFunc(f.Parts, match)
	case FilterNot:
		return !match(f.Parts[0])
	}
	var have any
	switch f.Field {
	case FieldID:
		have = id
	case FieldLabel:
		have = label
	default:
		have = meta[f.Key] // nil, where missing, equals no value
	}
	return slices.ContainsFunc(f.Values, func(want any) bool { return f.Op.compare(have, want) })
}

func (op FilterOp) compare(have, want any) bool {
	switch want := want.(type) {
	case string:
		have, ok := have.(string)
		return ok && (op == FilterPrefix && strings.HasPrefix(have, want) || op.holds(strings.Compare(have, want)))
	case float64:
		have, ok := have.(float64)
		return ok && (have < want && op.holds(-1) || have == want && op.holds(0) || have > want && op.holds(1))
	}
	return have == want
}

// holds reports whether an operator asks for an order.
func (op FilterOp) holds(order int) bool {
	switch op {
	case FilterIn:
		return order == 0
	case FilterLess:
		return order < 0
	case FilterLessEqual:
		return order <= 0
	case FilterGreater:
		return order > 0
	case FilterGreaterEqual:
		return order >= 0
	}
	return false
}

var operators = map[FilterOp]string{
	FilterAnd: " and ", FilterOr: " or ", FilterIn: " in ", FilterLess: " < ", FilterLessEqual: " <= ",
	FilterGreater: " > ", FilterGreaterEqual: " >= ", FilterPrefix: " startsWith ",
}

// String returns the filter as a pipeline file would have it. Equal
// filters give equal strings.
func (f *Filter) String() string {
	if f == nil {
		return "true"
	}
	switch f.Op {
	case FilterNot:
		return "not (" + f.Parts[0].String() + ")"
	case FilterAnd, FilterOr:
		if len(f.Parts) == 0 {
			return strconv.FormatBool(f.Op == FilterAnd)
		}
		parts := make([]string, len(f.Parts))
		for i := range f.Parts {
			parts[i] = f.Parts[i].String()
		}
		return "(" + strings.Join(parts, operators[f.Op]) + ")"
	}
	values := make([]string, len(f.Values))
	for i, v := range f.Values {
		values[i] = fmt.Sprint(v)
		if s, ok := v.(string); ok {
			values[i] = strconv.Quote(s)
		}
	}
	list := strings.Join(values, ", ")
	switch {
	case f.Op == FilterIn && len(values) == 1:
		return f.name() + " == " + list
	case f.Op == FilterIn:
		return f.name() + " in [" + list + "]"
	}
	return f.name() + operators[f.Op] + list
}

func (f *Filter) name() string {
	switch f.Field {
	case FieldID:
		return "id"
	case FieldLabel:
		return "label"
	}
	return "meta[" + strconv.Quote(f.Key) + "]"
}
