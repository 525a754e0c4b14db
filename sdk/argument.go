package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ArgumentType is the type of a config argument, as a person writes it.
type ArgumentType string

// The types of arguments, and the Go types they are decoded to.
const (
	TypeString     ArgumentType = "string"       // string
	TypeInt        ArgumentType = "int"          // int
	TypeFloat      ArgumentType = "float"        // float64
	TypeBool       ArgumentType = "bool"         // bool
	TypeDuration   ArgumentType = "duration"     // time.Duration, written "1m30s"
	TypePath       ArgumentType = "path"         // Path
	TypeStringList ArgumentType = "list(string)" // []string
	TypeStringMap  ArgumentType = "map(string)"  // map[string]string
)

// Path is the name of a file or folder. The engine makes it absolute: one
// written in a pipeline file is relative to that file.
type Path string

// Argument describes one argument of a stage's config block. It is read from
// the tags of a field of the stage's config struct:
//
//	`config:"name"`          the argument's name; fields without it are ignored
//	`config:"name,required"` it must be given
//	`config:"name,secret"`   it is never shown, logged, planned or hashed
//	`config:"name,neutral"`  it does not change what comes out: a timeout, requests at a time
//	`default:"15"`           what it is where it is not given (lists: comma-separated)
//	`one_of:"chat,completion"` the allowed values of a string
//	`doc:"..."`              a sentence for people
//
// Arguments that several stages have stand in a struct that is embedded; a field
// of the same name outside goes before the one inside.
type Argument struct {
	Name     string
	Type     ArgumentType
	Doc      string
	Required bool
	Secret   bool
	Neutral  bool            // what a stage made with another value is still good
	Default  json.RawMessage // nil: the zero value
	OneOf    []string
}

var goTypes = map[reflect.Type]ArgumentType{
	reflect.TypeFor[string]():            TypeString,
	reflect.TypeFor[int]():               TypeInt,
	reflect.TypeFor[float64]():           TypeFloat,
	reflect.TypeFor[bool]():              TypeBool,
	reflect.TypeFor[time.Duration]():     TypeDuration,
	reflect.TypeFor[Path]():              TypePath,
	reflect.TypeFor[[]string]():          TypeStringList,
	reflect.TypeFor[map[string]string](): TypeStringMap,
}

// arguments reads the description of C. It panics on a struct that cannot be
// described: that is a mistake in a program, not in a file.
func arguments[C any]() []Argument {
	t := reflect.TypeFor[C]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("sdk: config %s is not a struct", t))
	}
	var all []Argument
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("config")
		if !ok {
			continue
		}
		name, flags, _ := strings.Cut(tag, ",")
		typ, known := goTypes[f.Type]
		if !known {
			panic(fmt.Sprintf("sdk: %s.%s has type %s, which no argument can have", t, f.Name, f.Type))
		}
		a := Argument{
			Name: name, Type: typ, Doc: f.Tag.Get("doc"),
			Required: slices.Contains(strings.Split(flags, ","), "required"),
			Secret:   slices.Contains(strings.Split(flags, ","), "secret"),
			Neutral:  slices.Contains(strings.Split(flags, ","), "neutral"),
		}
		if v, ok := f.Tag.Lookup("one_of"); ok {
			a.OneOf = strings.Split(v, ",")
		}
		if v, ok := f.Tag.Lookup("default"); ok {
			a.Default = defaultJSON(t, f, typ, v)
		}
		all = append(all, a)
	}
	return all
}

func defaultJSON(t reflect.Type, f reflect.StructField, typ ArgumentType, text string) json.RawMessage {
	var raw []byte
	var err error
	switch typ {
	case TypeInt, TypeFloat, TypeBool, TypeStringMap:
		raw = []byte(text)
	case TypeStringList:
		raw, err = json.Marshal(strings.Split(text, ","))
	default:
		raw, err = json.Marshal(text)
	}
	if err == nil {
		err = setField(reflect.New(f.Type).Elem(), typ, raw)
	}
	if err != nil {
		panic(fmt.Sprintf("sdk: default of %s.%s: %v", t, f.Name, err))
	}
	return raw
}

// decodeConfig fills the struct that config points at from a JSON object and
// the arguments' defaults, and checks it. It reports every fault.
func decodeConfig(object []byte, args []Argument, config any) error {
	given := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &given); err != nil {
			return fmt.Errorf("config is not a JSON object: %w", err)
		}
	}
	var faults []error
	v := reflect.ValueOf(config).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("config"), ",")
		i := slices.IndexFunc(args, func(a Argument) bool { return a.Name == name })
		if name == "" || i < 0 {
			continue
		}
		raw, ok := given[name]
		delete(given, name)
		if !ok || string(raw) == "null" {
			if args[i].Required {
				faults = append(faults, &ArgumentError{name, errors.New("it is required")})
				continue
			}
			if raw = args[i].Default; raw == nil {
				continue
			}
		}
		if err := args[i].Check(raw); err != nil {
			faults = append(faults, &ArgumentError{name, err})
			continue
		}
		if err := setField(v.FieldByIndex(f.Index), args[i].Type, raw); err != nil {
			faults = append(faults, &ArgumentError{name, err})
		}
	}
	for name := range given {
		faults = append(faults, &ArgumentError{name, errors.New("there is no such argument")})
	}
	return errors.Join(faults...)
}

// Check reports whether a JSON value can be the argument.
func (a Argument) Check(raw json.RawMessage) error {
	var probe reflect.Value
	for t, typ := range goTypes {
		if typ == a.Type {
			probe = reflect.New(t).Elem()
		}
	}
	if !probe.IsValid() {
		return fmt.Errorf("unknown argument type %q", a.Type)
	}
	if err := setField(probe, a.Type, raw); err != nil {
		return err
	}
	if len(a.OneOf) > 0 && !slices.Contains(a.OneOf, probe.String()) {
		return fmt.Errorf("%q is not one of %s", probe.String(), strings.Join(a.OneOf, ", "))
	}
	return nil
}

func setField(v reflect.Value, typ ArgumentType, raw json.RawMessage) error {
	if typ == TypeDuration {
		text, err := strconv.Unquote(string(raw))
		if err != nil {
			return errors.New(`a duration is written as a string such as "1m30s"`)
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf(`%q is not a duration; write one such as "1m30s"`, text)
		}
		v.SetInt(int64(d))
		return nil
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return fmt.Errorf("it must be of type %s", typ)
	}
	return nil
}
