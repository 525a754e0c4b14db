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

// CheckArguments reports everything that tags say against the arguments that a file
// gives: ArgumentErrors, joined. Values are JSON; null counts as not given, and nil as
// given with a value that is not known.
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

// inside makes the errors of a block's arguments errors of the block.
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

// fill sets the fields of a config struct from values that were checked.
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

// CheckResolved reports what is wrong with values that a stage has resolved: each must be one
// that a file could give to one of its arguments.
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
