package rule

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Bind returns the filter for an item, nil where it selects every entry. The
// same pointer comes back for every item where the filter does not read it.
//
// Where an item lacks metadata that an entry's field is compared with, that
// comparison selects nothing, and neither does its not. The error of a value
// that cannot be computed or compared names the filter.
func (f *Filter) Bind(ctx context.Context, env *Env) (*sdk.Filter, error) {
	switch {
	case f == nil:
		return nil, nil
	case !f.reads["item"]:
		return f.bound, nil
	}
	e := f.begin(ctx, env)
	defer f.idle.Put(e)
	bound, err := f.bind(e)
	if err != nil {
		return nil, f.failed(err)
	}
	return bound, nil
}

func (f *Filter) bind(e *evaluation) (*sdk.Filter, error) {
	bound, err := e.part(&f.root, false)
	if err != nil || bound.Op == sdk.FilterAnd && len(bound.Parts) == 0 {
		return nil, err
	}
	return &bound, nil
}

// part binds a part and folds what does not depend on the entry; what follows a decided
// operand is not evaluated, as in any rule. negated says that the part is under an odd number
// of nots.
func (e *evaluation) part(p *part, negated bool) (sdk.Filter, error) {
	switch p.op {
	case sdk.FilterNot:
		inner, err := e.part(&p.parts[0], !negated)
		switch {
		case err != nil:
			return sdk.Filter{}, err
		case decided(inner):
			return truth(inner.Op == sdk.FilterOr), nil
		case inner.Op == sdk.FilterNot:
			return inner.Parts[0], nil
		}
		return sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{inner}}, nil
	case sdk.FilterAnd, sdk.FilterOr:
		joined := sdk.Filter{Op: p.op}
		for i := range p.parts {
			inner, err := e.part(&p.parts[i], negated)
			switch {
			case err != nil:
				return sdk.Filter{}, err
			case inner.Op == p.op: // also what changes nothing: true in and, false in or
				joined.Parts = append(joined.Parts, inner.Parts...)
			case decided(inner):
				return inner, nil
			default:
				joined.Parts = append(joined.Parts, inner)
			}
		}
		if len(joined.Parts) == 1 {
			return joined.Parts[0], nil
		}
		return joined, nil
	}
	v := p.operand.value
	if p.operand.code != nil {
		var err error
		if v, err = e.vm.Run(p.operand.code, e.values); err != nil {
			return sdk.Filter{}, err
		}
	}
	return p.leaf(v, negated)
}

// leaf binds a comparison, or a value that decides alone. A missing value selects nothing,
// under nots as well.
func (p *part) leaf(v any, negated bool) (sdk.Filter, error) {
	if v == nil {
		return truth(negated), nil
	}
	if p.op == 0 {
		holds, ok := v.(bool)
		if !ok {
			return sdk.Filter{}, fmt.Errorf("it gives a %T where true or false is needed", v)
		}
		return truth(holds), nil
	}
	given := []any{v}
	if p.list {
		var ok bool
		if given, ok = elements(v); !ok {
			return sdk.Filter{}, fmt.Errorf("the right side of in is a list, not %#v", v)
		}
	}
	f := sdk.Filter{Op: p.op, Field: p.field, Key: p.key}
	for _, g := range given {
		value, err := scalar(g)
		switch {
		case err != nil:
			return sdk.Filter{}, err
		case value != nil:
			f.Values = append(f.Values, value)
		case negated:
			return truth(true), nil
		}
	}
	if len(f.Values) == 0 {
		return truth(false), nil
	}
	return f, f.Check()
}

// scalar returns a value as filters hold it.
func scalar(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, float64:
		return v, nil
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return float64(r.Int()), nil
	case r.CanFloat():
		return r.Float(), nil
	case r.Kind() == reflect.Slice:
		return nil, errors.New("a field is one value, this is a list; for one of several, write in")
	}
	return nil, fmt.Errorf("a field is a text, a number or a bool; this is a %T", v)
}

func elements(v any) ([]any, bool) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return nil, false
	}
	list := make([]any, r.Len())
	for i := range list {
		list[i] = r.Index(i).Interface()
	}
	return list, true
}

func truth(holds bool) sdk.Filter {
	if holds {
		return sdk.Filter{Op: sdk.FilterAnd}
	}
	return sdk.Filter{Op: sdk.FilterOr}
}

// decided reports whether a filter does not depend on the entry.
func decided(f sdk.Filter) bool {
	return (f.Op == sdk.FilterAnd || f.Op == sdk.FilterOr) && len(f.Parts) == 0
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
