package rule

import "reflect"

// Name is a name that rules of a kind may use, for people.
type Name struct {
	Name   string
	Type   string // in words
	Needs  string // what has to stand above the rule, of an Expectation anywhere in the pipeline; empty: nothing
	Doc    string // empty: the name says it
	Fields []Name // of the record, or of each in the list

	writer writer
}

// Described are the names that a rule of a kind may use, without var.
func Described(kind Kind) []Name {
	var all []Name
	for _, n := range namesOf(kind) {
		t := reflect.TypeOf(n.typ)
		_, needs := Scope{}.written(n)
		all = append(all, Name{Name: n.name, Type: inWords(t), Needs: needs, Doc: docOf(n.name, kind), Fields: fieldNames(t), writer: n.writer})
	}
	return all
}

// Offers reports whether something above the rule writes the name.
func (s Scope) Offers(n Name) bool {
	ok, _ := s.written(name{writer: n.writer})
	return ok
}

// Function is one that rules of a kind may call.
type Function struct {
	Name string
	Form string // as recall("label"); empty: it is one of the expr language
	Doc  string
}

// Functions lists the functions that rules of a kind may call, those of the kind first.
func Functions(kind Kind) []Function {
	var all []Function
	for _, f := range figures {
		if kind == Expectation && f.form != "" {
			all = append(all, Function{f.name, f.form, f.doc})
		}
	}
	for _, b := range builtins {
		all = append(all, Function{Name: b})
	}
	return all
}

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
