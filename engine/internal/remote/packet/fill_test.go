package packet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// filler makes random values of any type, by reflection: a field that is new is filled, too.
type filler struct {
	*rand.Rand
	full   bool // no field is left empty, and no slice or map is nil
	finite bool // numbers are what JSON has
}

var words = []string{"transfer_money", "account blocked", "knn", "llm", "", "é<&>\u2028", "\x00", "\x00YQ==", "two\nlines\tand more", "\"quoted\" \\", "\ufffd", "a\xffb\xfe", "=1+1", "guide.md", "null"}

func (f *filler) word() string {
	for {
		w := words[f.IntN(len(words))]
		if f.IntN(3) == 0 {
			w += fmt.Sprint(f.IntN(40))
		}
		if w != "" || !f.full {
			return w
		}
	}
}

func (f *filler) number() float64 {
	switch n := f.IntN(8); {
	case n == 0 && !f.finite:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[f.IntN(4)]
	case n == 1:
		return 1
	case n == 2 && !f.full:
		return 0
	}
	return f.NormFloat64() * math.Pow(10, float64(f.IntN(9)-4))
}

func (f *filler) fault() error {
	base := errors.New(f.word())
	switch f.IntN(6) {
	case 0:
		return &outcome.Failure{Stage: f.word(), Err: sdk.Refused(base)}
	case 1:
		return fmt.Errorf("again: %w", sdk.Transient(base, time.Duration(f.IntN(1e9))))
	case 2:
		return &sdk.Error{Code: sdk.CodeStopped, Err: base}
	case 3:
		return fmt.Errorf("%s: %w", f.word(), context.DeadlineExceeded)
	}
	return base
}

func (f *filler) of(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *error:
		*at = f.fault()
		return
	case *sdk.Meta:
		if *at = nil; f.full || f.IntN(3) > 0 {
			*at = sdk.Meta{}
			n := f.IntN(4)
			if f.full {
				n++
			}
			for range n {
				(*at)[f.word()] = []any{f.word(), f.number(), true, false}[f.IntN(4)]
			}
		}
		return
	case *source.Field:
		*at = source.Field{Name: f.word(), Value: []any{f.word(), json.Number("1e5"), json.Number("-0.10"), true, false, nil, json.RawMessage(`{"a": [1,  "<é>"]}`)}[f.IntN(7)]}
		return
	case *time.Time:
		*at = time.Unix(f.Int64N(4e9), f.Int64N(1e9)).In(time.FixedZone("", 60*(f.IntN(1200)-600)))
		return
	case *outcome.Bill: // what is left out at 0 arrives as 0, also from below
		f.fields(v)
		at.Cost, at.Most, at.Gain = at.Cost+0, at.Most+0, at.Gain+0
		return
	case *source.Row:
		f.fields(v)
		if f.full || f.IntN(2) == 0 {
			*at = at.At("in/"+f.word(), at.Line-f.IntN(100))
		} else {
			at.File = ""
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(f.full || f.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(f.Int64N(1<<uint(1+f.IntN(60))) + 1)
	case reflect.Uint64:
		v.SetUint(f.Uint64() >> f.IntN(64))
	case reflect.Uint8:
		v.SetUint(f.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(f.number())
	case reflect.Float32:
		v.SetFloat(float64(float32(f.number())))
	case reflect.Array:
		for i := range v.Len() {
			f.of(v.Index(i))
		}
	case reflect.Slice:
		if f.full || f.IntN(4) > 0 {
			n := f.IntN(5)
			if f.full {
				n++
			}
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				f.of(v.Index(i))
			}
		}
	case reflect.Map:
		if f.full || f.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range 1 + f.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				f.of(key)
				f.of(value)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Pointer:
		if f.full || f.IntN(3) > 0 || v.Type() == reflect.TypeFor[*outcome.Failure]() {
			v.Set(reflect.New(v.Type().Elem()))
			f.of(v.Elem())
		}
	case reflect.Struct:
		f.fields(v)
	default:
		panic(fmt.Sprintf("a test cannot fill a %s", v.Type()))
	}
}

func (f *filler) fields(v reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			f.of(v.Field(i))
		}
	}
}

// told are the leaves of a value, a line each. Errors are what arrives of them, and prompts
// their hashes; nil and empty differ.
func told(value any) string {
	var lines []string
	var walk func(path string, v reflect.Value)
	say := func(path string, value any) { lines = append(lines, fmt.Sprintf("%s = %v", path, value)) }
	walk = func(path string, v reflect.Value) {
		if v.CanInterface() {
			switch x := v.Interface().(type) {
			case *outcome.Failure:
			case error:
				var coded *sdk.Error
				errors.As(x, &coded)
				if f, ok := x.(*outcome.Failure); ok { //nolint:errorlint // as it is
					walk(path+".failure", reflect.ValueOf(*f))
				} else if coded != nil {
					say(path, fmt.Sprintf("%q %v %v", x, coded.Code, coded.RetryAfter))
				} else {
					say(path, fmt.Sprintf("%q", x))
				}
				return
			case time.Time:
				say(path, x.Format(time.RFC3339Nano))
				return
			case json.RawMessage:
				say(path, "JSON "+string(x))
				return
			case source.Row:
				file, line := x.Place()
				say(path+".place", fmt.Sprintf("%q %d", file, line))
			}
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					walk(path+"."+f.Name, v.Field(i))
				}
			}
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		case reflect.Slice, reflect.Array:
			if v.Len() == 0 && (v.Kind() == reflect.Array || !v.IsNil()) {
				say(path, "empty")
			}
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		case reflect.Map:
			if v.Len() == 0 && !v.IsNil() {
				say(path, "empty")
			}
			keys := v.MapKeys()
			sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
			for _, key := range keys {
				walk(fmt.Sprintf("%s[%q]", path, fmt.Sprint(key)), v.MapIndex(key))
			}
		case reflect.String:
			if v.String() != "" {
				say(path, fmt.Sprintf("%s %q", v.Type(), v.String()))
			}
		default:
			if !v.IsZero() || v.Kind() == reflect.Float64 && math.Signbit(v.Float()) {
				say(path, v)
			}
		}
	}
	walk("", reflect.ValueOf(value))
	return strings.Join(lines, "\n")
}

// differ is the first line in which two values differ; empty: none.
func differ(want, got any) string {
	a, b := strings.Split(told(want), "\n"), strings.Split(told(got), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if len(a)+len(b) == 0 {
		return ""
	}
	return fmt.Sprintf("want %s\n got %s", strings.Join(a[:min(1, len(a))], ""), strings.Join(b[:min(1, len(b))], ""))
}
