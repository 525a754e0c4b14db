package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Range bounds a number, or a duration in seconds. The zero value allows every number.
type Range struct {
	Min, Max                 *float64 // nil: no bound
	MinExcluded, MaxExcluded bool
}

// allows reports whether a number is within the range.
func (r Range) allows(x float64) bool {
	above := r.Min == nil || x > *r.Min || x == *r.Min && !r.MinExcluded
	below := r.Max == nil || x < *r.Max || x == *r.Max && !r.MaxExcluded
	return above && below
}

// IsZero reports whether the range allows every number.
func (r Range) IsZero() bool { return r.Min == nil && r.Max == nil }

// String returns the range in words: "at least 1", "more than 0 and at most 1".
func (r Range) String() string { return r.words(number) }

func (r Range) words(show func(float64) string) string {
	if r.Min != nil && r.Max != nil && !r.MinExcluded && !r.MaxExcluded {
		return fmt.Sprintf("from %s to %s", show(*r.Min), show(*r.Max))
	}
	var parts []string
	add := func(bound *float64, excluded bool, open, closed string) {
		if bound != nil && excluded {
			parts = append(parts, open+" "+show(*bound))
		} else if bound != nil {
			parts = append(parts, closed+" "+show(*bound))
		}
	}
	add(r.Min, r.MinExcluded, "more than", "at least")
	add(r.Max, r.MaxExcluded, "less than", "at most")
	return strings.Join(parts, " and ")
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func seconds(x float64) string { return time.Duration(x * float64(time.Second)).String() }

// Length bounds the number of characters of a string, or of elements of a list or map. 0 means no
// bound.
type Length struct{ Min, Max int }

// Bounds returns the bounds of the argument's value in words, such as "from 0 to 1" or "1s or more".
// Empty: there are none.
func (a Argument) Bounds() string {
	var parts []string
	if a.Type == TypeDuration {
		parts = append(parts, a.Range.words(seconds))
	} else {
		parts = append(parts, a.Range.String())
	}
	least, most := float64(a.Length.Min), float64(a.Length.Max)
	length := Range{}
	if a.Length.Min > 0 {
		length.Min = &least
	}
	if a.Length.Max > 0 {
		length.Max = &most
	}
	if what := "elements"; a.Length == (Length{Min: 1}) {
		parts = append(parts, "not empty")
	} else if !length.IsZero() {
		if a.Type == TypeString {
			what = "characters"
		}
		parts = append(parts, length.String()+" "+what)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// Valid reports whether an argument's constraints fit its type.
func (a Argument) Valid() error {
	if a.Pattern != "" {
		if _, err := regexp.Compile(a.Pattern); err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
	}
	numbers := []ArgumentType{TypeInt, TypeFloat, TypeDuration, TypeNumberList, TypeNumberMap}
	texts := []ArgumentType{TypeString, TypeStringList, TypeStringMap, TypeListMap}
	switch {
	case !a.Range.IsZero() && !slices.Contains(numbers, a.Type):
		return fmt.Errorf("a value of type %s has no range", a.Type)
	case (len(a.OneOf) > 0 || a.Pattern != "") && !slices.Contains(texts, a.Type):
		return fmt.Errorf("a value of type %s has neither choices nor a pattern", a.Type)
	case len(a.Fields) > 0 != (a.Type == TypeBlock):
		return errors.New("a block has arguments, and nothing else has")
	}
	for _, inner := range a.Fields {
		// A plan shows a block as a whole.
		if inner.Type == TypeBlock || inner.Secret {
			return fmt.Errorf("%s: an argument of a block is neither a block nor secret", inner.Name)
		}
	}
	return nil
}

// Check reports everything that is wrong with a JSON value for the argument: ArgumentErrors, joined.
// Each names the element of the value that is wrong.
func (a Argument) Check(raw json.RawMessage) error {
	if a.Type == TypeBlock {
		return inside(a.Name, checkObject(raw, a.Fields))
	}
	for t, typ := range goTypes {
		if typ == a.Type {
			value := reflect.New(t).Elem()
			if err := setField(value, a.Type, raw); err != nil {
				return &ArgumentError{Argument: a.Name, Err: err}
			}
			return a.check(value)
		}
	}
	return &ArgumentError{Argument: a.Name, Err: fmt.Errorf("unknown argument type %q", a.Type)}
}

// check checks a value of the argument's Go type.
func (a Argument) check(v reflect.Value) error {
	var errs []error
	fail := func(err error, path ...string) {
		if err != nil {
			errs = append(errs, &ArgumentError{Argument: a.Name, Path: path, Err: err})
		}
	}
	switch value := v.Interface().(type) {
	case string:
		fail(a.checkLength(utf8.RuneCountInString(value)))
		fail(a.checkText(value))
	case int:
		fail(a.checkNumber(float64(value), number))
	case float64:
		fail(a.checkNumber(value, number))
	case time.Duration:
		fail(a.checkNumber(value.Seconds(), seconds))
	case []string:
		fail(a.checkLength(len(value)))
		for i, text := range value {
			fail(a.checkText(text), strconv.Itoa(i))
		}
	case []float64:
		fail(a.checkLength(len(value)))
		for i, x := range value {
			fail(a.checkNumber(x, number), strconv.Itoa(i))
		}
	case map[string]string:
		fail(a.checkLength(len(value)))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fail(a.checkText(value[key]), key)
		}
	case map[string]float64:
		fail(a.checkLength(len(value)))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fail(a.checkNumber(value[key], number), key)
		}
	case map[string][]string:
		fail(a.checkLength(len(value)))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			for i, text := range value[key] {
				fail(a.checkText(text), key, strconv.Itoa(i))
			}
		}
	}
	return errors.Join(errs...)
}

func (a Argument) checkNumber(x float64, show func(float64) string) error {
	if a.Range.allows(x) {
		return nil
	}
	return fmt.Errorf("it must be %s, and is %s", a.Range.words(show), a.quote(show(x)))
}

func (a Argument) checkLength(n int) error {
	if n >= a.Length.Min && (a.Length.Max == 0 || n <= a.Length.Max) {
		return nil
	}
	if n == 0 {
		return errors.New("it must not be empty")
	}
	length := Argument{Type: a.Type, Length: a.Length}
	return fmt.Errorf("it must have %s, and has %d", length.Bounds(), n)
}

// checkText does not quote a text that fails its pattern. The text may hold a password that is not
// marked as a secret, such as a password in an address.
func (a Argument) checkText(text string) error {
	switch {
	case len(a.OneOf) > 0 && !slices.Contains(a.OneOf, text):
		return fmt.Errorf("%s is not one of %s", a.quote(strconv.Quote(text)), strings.Join(a.OneOf, ", "))
	case a.Pattern == "" || regexp.MustCompile(a.Pattern).MatchString(text):
		return nil
	case text == "":
		return errors.New("it must not be empty")
	case a.Example != "":
		return fmt.Errorf("it must be of the form of %q", a.Example)
	}
	return fmt.Errorf("it must match %s", a.Pattern)
}

// quote returns the value, or a placeholder if the argument is a secret.
func (a Argument) quote(value string) string {
	if a.Secret {
		return "(secret)"
	}
	return value
}
