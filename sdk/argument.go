package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ArgumentType is the type of a config argument, as a person writes it.
type ArgumentType string

// The types of arguments, and the Go types they are decoded to. A pointer stays nil where
// a file gives nothing.
const (
	TypeString     ArgumentType = "string"            // string, *string
	TypeInt        ArgumentType = "int"               // int, *int
	TypeFloat      ArgumentType = "float"             // float64, *float64
	TypeBool       ArgumentType = "bool"              // bool, *bool
	TypeDuration   ArgumentType = "duration"          // time.Duration, written "1m30s"
	TypePath       ArgumentType = "path"              // Path
	TypeStringList ArgumentType = "list(string)"      // []string
	TypeNumberList ArgumentType = "list(number)"      // []float64
	TypeStringMap  ArgumentType = "map(string)"       // map[string]string
	TypeNumberMap  ArgumentType = "map(number)"       // map[string]float64
	TypeListMap    ArgumentType = "map(list(string))" // map[string][]string
	TypeBlock      ArgumentType = "block"             // a struct with config tags of its own, none of them a block or secret
)

// Path is the name of a file or folder. The engine makes it absolute: one
// written in a pipeline file is relative to that file.
type Path string

// Argument describes one argument of a stage's config block. It is read from
// the tags of a field of the stage's config struct, the only place that
// describes it: checks, documents and completion come from there.
//
//	`config:"name"`          the argument's name; fields without it are ignored
//	`config:"name,required"` it must be given
//	`config:"name,secret"`   it is never shown, logged, planned or hashed
//	`affects_output:"false"` it does not change results: a timeout, requests at a time
//	`default:"15"`           what it is where it is not given (lists: comma-separated)
//	`one_of:"chat,completion"` the allowed values of a string
//	`min:"1" max:"128"`      bounds of a number or duration, or of each in a list or map
//	`above:"0" below:"1"`    the same, without the bounds themselves
//	`min_length:"1" max_length:"30"` characters of a string, elements of a list or map
//	`pattern:"^[a-z]+$"`     what a string, or each in a list or map, has to match (RE2)
//	`example:"http://127.0.0.1:8080/v1"` a value for people; it belongs beside a pattern
//	`conflicts:"token"`      arguments that must not be given beside it, with commas
//	`requires:"password"`    arguments that must be given beside it, with commas
//	`since:"0.2.0"`          the version of the plugin that first had it
//	`doc:"..."`              a sentence for people
//
// Arguments that several stages have stand in a struct that is embedded; a field
// of the same name outside goes before the one inside. A check that tags cannot
// say belongs into the function that Validates gives the stage.
type Argument struct {
	Name             string
	Type             ArgumentType
	Doc              string
	Required         bool
	Secret           bool
	OutputUnaffected bool            // it does not change results: those made with another value stay valid
	Default          json.RawMessage // nil: the zero value
	OneOf            []string
	Range            Range
	Length           Length
	Pattern          string // RE2; empty: any
	Example          string
	Conflicts        []string
	Requires         []string
	Since            string
	Fields           []Argument // of a block
}

var goTypes = map[reflect.Type]ArgumentType{
	reflect.TypeFor[string]():              TypeString,
	reflect.TypeFor[int]():                 TypeInt,
	reflect.TypeFor[float64]():             TypeFloat,
	reflect.TypeFor[bool]():                TypeBool,
	reflect.TypeFor[time.Duration]():       TypeDuration,
	reflect.TypeFor[Path]():                TypePath,
	reflect.TypeFor[[]string]():            TypeStringList,
	reflect.TypeFor[[]float64]():           TypeNumberList,
	reflect.TypeFor[map[string]string]():   TypeStringMap,
	reflect.TypeFor[map[string]float64]():  TypeNumberMap,
	reflect.TypeFor[map[string][]string](): TypeListMap,
}

// arguments reads the description of a config struct. It panics on one that
// cannot be described: that is a mistake in a program, not in a file.
func arguments(t reflect.Type) []Argument {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("sdk: config %s is not a struct", t))
	}
	var all []Argument
	for _, f := range reflect.VisibleFields(t) {
		if tag, ok := f.Tag.Lookup("config"); ok {
			all = append(all, argumentOf(t, f, tag))
		}
	}
	for _, a := range all {
		for _, other := range slices.Concat(a.Conflicts, a.Requires) {
			if !slices.ContainsFunc(all, func(a Argument) bool { return a.Name == other }) {
				panic(fmt.Sprintf("sdk: %s of %s names %q, which is no argument", a.Name, t, other))
			}
		}
	}
	return all
}

func argumentOf(t reflect.Type, f reflect.StructField, tag string) Argument {
	name, flags, _ := strings.Cut(tag, ",")
	has := func(flag string) bool { return slices.Contains(strings.Split(flags, ","), flag) }
	list := func(key string) []string {
		if v, ok := f.Tag.Lookup(key); ok {
			return strings.Split(v, ",")
		}
		return nil
	}
	a := Argument{
		Name: name, Doc: f.Tag.Get("doc"), Required: has("required"), Secret: has("secret"), OutputUnaffected: f.Tag.Get("affects_output") == "false",
		OneOf: list("one_of"), Pattern: f.Tag.Get("pattern"), Example: f.Tag.Get("example"),
		Conflicts: list("conflicts"), Requires: list("requires"), Since: f.Tag.Get("since"),
	}
	var known bool
	if a.Type, known = goTypes[f.Type]; !known && f.Type.Kind() == reflect.Pointer {
		a.Type, known = goTypes[f.Type.Elem()]
		known = known && slices.Contains([]ArgumentType{TypeString, TypeInt, TypeFloat, TypeBool}, a.Type)
	}
	if !known && f.Type.Kind() == reflect.Struct {
		a.Type, a.Fields, known = TypeBlock, arguments(f.Type), true
	}
	if !known {
		panic(fmt.Sprintf("sdk: %s.%s has type %s, which no argument can have", t, f.Name, f.Type))
	}
	err := a.readBounds(f.Tag)
	if v, ok := f.Tag.Lookup("default"); ok && err == nil {
		a.Default = defaultJSON(a.Type, v)
		err = a.Check(a.Default)
	}
	if err != nil {
		panic(fmt.Sprintf("sdk: %s.%s: %v", t, f.Name, err))
	}
	return a
}

// defaultJSON is what a default tag says; Check tells whether it is a value.
func defaultJSON(typ ArgumentType, text string) json.RawMessage {
	switch typ {
	case TypeString, TypePath, TypeDuration:
		return marshal(text)
	case TypeStringList:
		return marshal(strings.Split(text, ","))
	case TypeNumberList:
		return json.RawMessage("[" + text + "]")
	}
	return json.RawMessage(text)
}

func marshal(text any) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // texts always encode
	}
	return raw
}

// readBounds reads the tags that bound a value.
func (a *Argument) readBounds(tag reflect.StructTag) error {
	for _, bound := range []struct {
		key      string
		to       **float64
		excluded *bool
	}{
		{"min", &a.Range.Min, nil}, {"max", &a.Range.Max, nil},
		{"above", &a.Range.Min, &a.Range.MinExcluded}, {"below", &a.Range.Max, &a.Range.MaxExcluded},
	} {
		text, ok := tag.Lookup(bound.key)
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if a.Type == TypeDuration {
			var d time.Duration
			d, err = time.ParseDuration(text)
			value = d.Seconds()
		}
		if err != nil || *bound.to != nil {
			return fmt.Errorf("tag %s: %q is no bound, or a second one", bound.key, text)
		}
		*bound.to = &value
		if bound.excluded != nil {
			*bound.excluded = true
		}
	}
	for key, to := range map[string]*int{"min_length": &a.Length.Min, "max_length": &a.Length.Max} {
		if text, ok := tag.Lookup(key); ok {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("tag %s: %q is not a number of at least 1", key, text)
			}
			*to = n
		}
	}
	return a.Valid()
}
