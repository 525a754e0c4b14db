package rule

import (
	"reflect"
	"slices"
)

// Name is a name that rules of a kind may use, for people.
type Name struct {
	Name   string
	Type   string // in words
	Needs  string // what has to stand above the rule; empty: nothing
	Fields []Name // of the record, or of each in the list

	writer writer
}

// Described are the names that a rule of a kind may use, without var.
func Described(kind Kind) []Name {
	var all []Name
	for _, n := range namesOf(kind) {
		t := reflect.TypeOf(n.typ)
		_, needs := Scope{}.written(n)
		all = append(all, Name{Name: n.name, Type: inWords(t), Needs: needs, Fields: fieldNames(t), writer: n.writer})
	}
	return all
}

// Offers reports whether something above the rule writes the name.
func (s Scope) Offers(n Name) bool {
	ok, _ := s.written(name{writer: n.writer})
	return ok
}

// Functions lists the functions that rules may call.
func Functions() []string { return slices.Clone(builtins) }

func fieldNames(t reflect.Type) []Name {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var all []Name
	for f := range t.Fields() {
		all = append(all, Name{Name: f.Tag.Get("expr"), Type: inWords(f.Type)})
	}
	return all
}

func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Float64:
		return "a number"
	}
	return describe(t.String())
}
