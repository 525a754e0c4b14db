package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Argument describes one argument of a stage's config block. It comes from the tags of a field in the
// stage's config struct. Nothing else describes the argument: checks, documents and completion all
// use these tags.
//
//	`config:"name"`          the argument's name; fields without it are ignored
//	`config:"name,required"` a file must give it
//	`config:"name,secret"`   it is never shown, logged, planned or hashed
//	`affects_output:"false"` it does not change results: a timeout, requests at a time
//	`default:"15"`           its value if a file gives none (lists: comma-separated)
//	`one_of:"chat,completion"` the allowed values of a string
//	`min:"1" max:"128"`      bounds of a number or duration, or of each element of a list or map
//	`above:"0" below:"1"`    the same, but the bounds themselves are not allowed
//	`min_length:"1" max_length:"30"` characters of a string, elements of a list or map
//	`pattern:"^[a-z]+$"`     RE2 that a string, or each string of a list or map, has to match
//	`example:"http://127.0.0.1:8080/v1"` a value for people; a pattern should have one
//	`conflicts:"token"`      arguments that must not be given together with it, comma-separated
//	`requires:"password"`    arguments that must be given together with it, comma-separated
//	`since:"0.2.0"`          the version of the plugin that introduced it
//	`doc:"..."`              a sentence for people
//
// Arguments that several stages share stand in an embedded struct; a field of the same name in the
// outer struct hides the embedded one. A check that tags cannot express belongs into the function
// given to Validates.
type Argument struct {
	Name             string
	Type             ArgumentType
	Doc              string
	Required         bool
	Secret           bool
	OutputUnaffected bool            // it does not change results: results made with another value stay valid
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

// ArgumentType is the type of a config argument, as a person writes it.
type ArgumentType string

// The types of arguments, and the Go types that they are decoded to. A pointer stays nil if a file
// gives no value.
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

// Path is the name of a file or folder. The engine makes it absolute: a path in a pipeline file is
// relative to that file.
type Path string

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

// arguments reads the description of a config struct. It panics if it cannot describe the struct:
// that is a mistake in a program, not in a file.
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

// defaultJSON returns the value of a default tag as JSON. Check reports whether that is a valid
// value.
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

// CheckArguments checks the arguments that a file gives against their tags. It reports every mistake:
// ArgumentErrors, joined. Values are JSON; null counts as not given, and nil as given with an unknown
// value.
func CheckArguments(given map[string]json.RawMessage, arguments []Argument) error {
	var errs []error
	fail := func(name, format string, args ...any) {
		errs = append(errs, &ArgumentError{Argument: name, Err: fmt.Errorf(format, args...)})
	}
	isGiven := func(name string) bool { raw, ok := given[name]; return ok && string(raw) != "null" }
	says := func(name string) bool { return isGiven(name) && string(given[name]) != `""` } // env("X", "") says nothing
	var known []string
	for _, a := range arguments {
		known = append(known, a.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case len(known) == 0:
			fail(name, "there is no such argument, nor any other")
		case !slices.Contains(known, name):
			fail(name, "there is no such argument; there are %s", strings.Join(known, ", "))
		}
	}
	for _, a := range arguments {
		if !isGiven(a.Name) {
			if a.Required {
				fail(a.Name, "it is required")
			}
			continue
		}
		if raw := given[a.Name]; raw != nil {
			errs = append(errs, a.Check(raw))
		}
		if !says(a.Name) {
			continue
		}
		for _, other := range a.Conflicts {
			if says(other) {
				fail(a.Name, "it cannot be given beside %s: leave one of them out", other)
			}
		}
		for _, other := range a.Requires {
			if !says(other) {
				fail(a.Name, "it means nothing without %s: give both, or neither", other)
			}
		}
	}
	return errors.Join(errs...)
}

// checkObject is CheckArguments for a JSON object.
func checkObject(object []byte, arguments []Argument) error {
	given, err := readObject(object)
	if err != nil {
		return err
	}
	return CheckArguments(given, arguments)
}

func readObject(object []byte) (map[string]json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &given); err != nil {
			return nil, fmt.Errorf("it is not a JSON object: %w", err)
		}
	}
	return given, nil
}

// inside turns errors of a block's arguments into errors of the block.
func inside(block string, err error) error {
	var errs []error
	for _, e := range ArgumentErrors(err) {
		path := e.Path
		if e.Argument != "" {
			path = append([]string{e.Argument}, path...)
		}
		errs = append(errs, &ArgumentError{Argument: block, Path: path, Err: e.Err})
	}
	return errors.Join(errs...)
}

// decodeConfig fills the struct that config points at from a JSON object and
// the arguments' defaults, and checks it. It reports every error.
func decodeConfig(object []byte, arguments []Argument, config any) error {
	given, err := readObject(object)
	if err == nil {
		err = CheckArguments(given, arguments)
	}
	if err != nil {
		return err
	}
	return fill(reflect.ValueOf(config).Elem(), given, arguments)
}

// fill sets the fields of a config struct to checked values.
func fill(v reflect.Value, given map[string]json.RawMessage, arguments []Argument) error {
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("config"), ",")
		i := slices.IndexFunc(arguments, func(a Argument) bool { return a.Name == name })
		if name == "" || i < 0 {
			continue
		}
		a, to := arguments[i], v.FieldByIndex(f.Index)
		raw, ok := given[name]
		if !ok || string(raw) == "null" {
			raw = a.Default
		}
		var err error
		switch {
		case a.Type == TypeBlock: // its arguments have defaults of their own
			var object map[string]json.RawMessage
			if object, err = readObject(raw); err == nil {
				err = fill(to, object, a.Fields)
			}
		case raw != nil:
			err = setField(to, a.Type, raw)
		}
		if err != nil {
			return &ArgumentError{Argument: name, Err: err}
		}
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
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil && typ == TypeInt {
		return errors.New("it must be of type int, a whole number")
	} else if err != nil {
		return fmt.Errorf("it must be of type %s", typ)
	}
	return nil
}

// CheckResolved checks the values that a stage has resolved. Each must be a value that a file could
// give to one of the stage's arguments.
func CheckResolved(values map[string]json.RawMessage, arguments []Argument) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(arguments, func(a Argument) bool { return a.Name == name })
		if i < 0 {
			errs = append(errs, &ArgumentError{Argument: name, Err: errors.New("there is no such argument")})
			continue
		}
		errs = append(errs, arguments[i].Check(values[name]))
	}
	return errors.Join(errs...)
}

// Document is a text from a source, before it is cut into chunks.
type Document struct {
	ID   string
	Text string // valid UTF-8
	Meta Meta   // what the source knows: "path", "title", "format", ...
}

// Span is a part of a text, from byte Start up to byte End.
type Span struct{ Start, End int }

// Chunk is a part of a document: the bytes from Start up to End of its text.
type Chunk struct {
	Start, End int
	// Header is a part of the document before Start that the chunk repeats, since the chunk cannot be
	// understood without it: the header rows of a table that was cut. Zero: none.
	Header Span `json:",omitzero"`
	Meta   Meta // what the chunker knows: "headings", "declaration", ...
}

// In returns the text of a chunk, given the text of its document: the header, then the chunk's own
// part.
func (c Chunk) In(document string) string {
	return document[c.Header.Start:c.Header.End] + document[c.Start:c.End]
}

// Passage is a chunk with its document. A document that is not cut is one passage.
type Passage struct {
	Document *Document // the same for all of its passages
	Chunk
}

// Text returns the passage's text, with its header.
func (p Passage) Text() string { return p.In(p.Document.Text) }

// Addition is what an enricher adds to a passage. Context, Terms or both may be empty.
type Addition struct {
	// Context places the passage in its document. The engine makes one line of it.
	Context string
	// Terms are keywords or questions by which people may search for the passage. The
	// engine makes one line of each.
	Terms []string
}

// CompleteConfig adds the values that a stage has resolved to a config. Values that the config
// already has stay. Both are JSON objects, and each may be empty.
func CompleteConfig(config, resolved []byte) ([]byte, error) {
	if len(resolved) == 0 {
		return config, nil
	}
	var values, given map[string]json.RawMessage
	if err := json.Unmarshal(resolved, &values); err != nil {
		return nil, fmt.Errorf("what a stage has resolved: %w", err)
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &given); err != nil {
			return nil, fmt.Errorf("a stage's config: %w", err)
		}
	}
	for name, value := range given {
		if string(value) != "null" {
			values[name] = value
		}
	}
	return json.Marshal(values)
}
