package identity

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/pipeline"
)

// expression is a rule or a filter.
type expression interface {
	Text() string
	Variables() map[string]cty.Value
}

var (
	expressionType = reflect.TypeFor[expression]()
	rawType        = reflect.TypeFor[json.RawMessage]()
	stageType      = reflect.TypeFor[*pipeline.Stage]()
	knowledgeType  = reflect.TypeFor[*pipeline.Knowledge]()
)

// tag is what the identity tag of a field says.
type tag struct {
	scopes []string
	whole  bool   // its type has no tags, and all of it counts
	reason string // why it is out; empty: it is in
}

// tagOf reads a field's tag; ok: there is one, and it means something.
func tagOf(f reflect.StructField) (t tag, ok bool) {
	text, ok := f.Tag.Lookup("identity")
	if !ok {
		return t, false
	}
	if reason, out := strings.CutPrefix(text, "-,"); out {
		t.reason = strings.TrimSpace(reason)
		return t, t.reason != ""
	}
	for option := range strings.SplitSeq(text, ",") {
		switch option {
		case "run", "knowledge":
			t.scopes = append(t.scopes, option)
		case "whole":
			t.whole = true
		default:
			return t, false
		}
	}
	return t, len(t.scopes) > 0
}

// reader makes of values what of them counts in a scope, as JSON can hold it.
type reader struct {
	scope     string
	variables map[string]cty.Value         // that the rules it came by read
	searched  map[*pipeline.Knowledge]bool // that retrieve blocks name
}

func newReader(scope string) *reader {
	return &reader{scope, map[string]cty.Value{}, map[*pipeline.Knowledge]bool{}}
}

// value reads a pointer to a struct with tags, or nil.
func (r *reader) value(pointer any) any {
	v := reflect.ValueOf(pointer)
	if v.IsNil() {
		return nil
	}
	return r.fields(v.Elem(), false)
}

// fields reads a struct: an object of the fields that count and are not zero.
func (r *reader) fields(v reflect.Value, whole bool) map[string]any {
	object := map[string]any{}
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		t, ok := tagOf(f)
		switch {
		case whole && f.IsExported():
			t.whole = true
		case !ok:
			panic(fmt.Sprintf("identity: %s.%s has no tag that says whether results depend on it", v.Type(), f.Name))
		case !slices.Contains(t.scopes, r.scope):
			continue
		}
		if value.IsZero() {
			continue
		}
		read := r.read(value, t.whole)
		if inside, ok := read.(map[string]any); ok && value.Kind() == reflect.Struct && len(inside) == 0 {
			continue // only what is out is set
		}
		object[f.Name] = read
	}
	return object
}

func (r *reader) read(v reflect.Value, whole bool) any {
	switch {
	case v.Type().Implements(expressionType):
		e := v.Interface().(expression)
		for name, value := range e.Variables() {
			r.variables[name] = value
		}
		return e.Text()
	case v.Type() == rawType:
		return v.Interface()
	case v.Type() == knowledgeType: // it has parts of its own
		k := v.Interface().(*pipeline.Knowledge)
		r.searched[k] = true
		return k.Name
	}
	switch v.Kind() {
	case reflect.Pointer:
		return r.read(v.Elem(), whole)
	case reflect.Struct:
		return r.fields(v, whole)
	case reflect.Slice, reflect.Array:
		list := []any{}
		for i := range v.Len() {
			if v.Type().Elem() == stageType && !v.Index(i).Interface().(*pipeline.Stage).Enabled {
				continue
			}
			list = append(list, r.read(v.Index(i), whole))
		}
		return list
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return v.Interface()
	}
	panic(fmt.Sprintf("identity: results cannot depend on a %s: it has no digest", v.Type()))
}
