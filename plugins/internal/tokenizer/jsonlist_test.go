package tokenizer

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// list returns the elements with which Each calls its function.
func list(raw string) (elements []string, err error) {
	err = eachElement(json.RawMessage(raw), func(e []byte) error {
		elements = append(elements, string(e))
		return nil
	})
	return elements, err
}

func TestJsonlistEach(t *testing.T) {
	for raw, want := range map[string][]string{
		` [] `: nil, `{ }`: nil, `[1]`: {"1"}, `[ "a" , 2.5e3,null ]`: {`"a"`, "2.5e3", "null"},
		`[["a,",1], {"b":[2,3]},[]]`: {`["a,",1]`, `{"b":[2,3]}`, `[]`},
		`["\\",",\"]",""]`:           {`"\\"`, `",\"]"`, `""`},
		`{"a":1,"b,}" : [2,3]}`:      {`"a":1`, `"b,}" : [2,3]`},
	} {
		if got, err := list(raw); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v; want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{"", "null", "7", `"[]"`} {
		if _, err := list(raw); err == nil || !strings.Contains(err.Error(), "neither an array nor an object") {
			t.Errorf("%s: error %v", raw, err)
		}
	}
	enough, calls := errors.New("enough"), 0
	if err := eachElement(json.RawMessage(`[1,2,3]`), func([]byte) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

func TestString(t *testing.T) {
	for element, want := range map[string]string{`""`: "", `"é"`: "é", `"\u0041\"\n"`: "A\"\n", "\"a\xff\"": "a\ufffd"} {
		if got, err := stringOf([]byte(element)); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", element, got, err, want)
		}
	}
	for _, element := range []string{"1", "null", `["a"]`, "", `"a":"b"`} {
		if got, err := stringOf([]byte(element)); err == nil || !strings.Contains(err.Error(), "is not a string") {
			t.Errorf("%s: got %q, %v", element, got, err)
		}
	}
}

// FuzzEach compares with encoding/json.
func FuzzEach(f *testing.F) {
	f.Add(`["a",[1,{"b":"]"}],{}]`)
	f.Add(`{"a\"":1,"b" : [2], "\\":"x,"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		var array []json.RawMessage
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(raw), &array) == nil && array != nil {
			got, err := list(raw)
			want := []string{}
			for _, e := range array {
				want = append(want, string(e))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: got %q, %v; want %q", raw, got, err, want)
			}
		}
		if json.Unmarshal([]byte(raw), &object) == nil && object != nil {
			got, want := map[string]string{}, map[string]string{}
			err := eachElement(json.RawMessage(raw), func(e []byte) error {
				name, value, err := elementOf(e)
				got[name] = string(value)
				return err
			})
			for name, value := range object {
				want[name] = string(value)
			}
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%s: got %q, %v; want %q", raw, got, err, want)
			}
		}
	})
}
