package sdk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type bounded struct {
	Heat    float64             `config:"heat" min:"0" max:"2"`
	Top     float64             `config:"top" above:"0" max:"1"`
	Count   int                 `config:"count" min:"1"`
	Wait    time.Duration       `config:"wait" above:"0s" max:"1m" default:"5s"`
	Name    string              `config:"name" min_length:"2" max_length:"4"`
	Address string              `config:"address" pattern:"^https?://." example:"http://h"`
	Stop    []string            `config:"stop" max_length:"2" pattern:"."`
	Grid    []float64           `config:"grid" below:"1"`
	Weights map[string]float64  `config:"weights" min:"0"`
	Ways    map[string]string   `config:"ways" one_of:"up,down"`
	Lists   map[string][]string `config:"lists" min_length:"1" pattern:"^[a-z]*$"`
	Key     string              `config:"key,secret" pattern:"^sk-" conflicts:"token"`
	Token   string              `config:"token"`
	User    string              `config:"user" requires:"password"`
	Pass    string              `config:"password,secret"`
	Profile struct {
		Effort string `config:"effort,required" one_of:"low,high"`
		Budget int    `config:"budget" min:"1" default:"7"`
	} `config:"profile"`
}

func TestConstraints(t *testing.T) {
	arguments := arguments(reflect.TypeFor[bounded]())
	tests := []struct{ config, want string }{
		{`{"heat": 0, "top": 1, "count": 1, "wait": "1m", "name": "äöü", "address": "https://h", "stop": ["a", "b"], "grid": [0.5, -3]}`, ""},
		{`{"weights": {"a": 0, "b": 2.5}, "ways": {"a": "up"}, "lists": {"a": []}, "key": "sk-1", "user": "u", "password": "p"}`, ""},
		{`{"key": "sk-1", "token": ""}`, ""}, // an empty text counts as not given
		{`{"profile": {"effort": "low"}}`, ""},
		{`{"heat": -1}`, `heat: it must be from 0 to 2, and is -1`},
		{`{"top": 0}`, `top: it must be more than 0 and at most 1, and is 0`},
		{`{"top": 9}`, `top: it must be more than 0 and at most 1, and is 9`},
		{`{"count": 0}`, `count: it must be at least 1, and is 0`},
		{`{"count": 1.5}`, `count: it must be of type int, a whole number`},
		{`{"wait": "2m"}`, `wait: it must be more than 0s and at most 1m0s, and is 2m0s`},
		{`{"name": "a"}`, `name: it must have from 2 to 4 characters, and has 1`},
		{`{"name": ""}`, `name: it must not be empty`},
		{`{"address": "ht!tp:/x"}`, `address: it must be of the form of "http://h"`},
		{`{"stop": ["a", "", "c"]}`, "stop: it must have at most 2 elements, and has 3\nstop[1]: it must not be empty"},
		{`{"grid": [0, 1]}`, `grid[1]: it must be less than 1, and is 1`},
		{`{"grid": [0, "x"]}`, `grid: it must be of type list(number)`},
		{`{"weights": {"knn": -2, "llm": 1}}`, `weights["knn"]: it must be at least 0, and is -2`},
		{`{"ways": {"b": "left"}}`, `ways["b"]: "left" is not one of up, down`},
		{`{"lists": {"a": ["x", "Y"]}}`, `lists["a"][1]: it must match ^[a-z]*$`},
		{`{"key": "hush"}`, `key: it must match ^sk-`},
		{`{"key": "sk-1", "token": "t"}`, `key: it cannot be given beside token: leave one of them out`},
		{`{"user": "u"}`, `user: it means nothing without password: give both, or neither`},
		{`{"profile": {"budget": 0, "colour": 1}}`, "profile[\"colour\"]: there is no such argument; there are effort, budget\nprofile[\"effort\"]: it is required\nprofile[\"budget\"]: it must be at least 1, and is 0"},
		{`{"profile": 3}`, `profile: it is not a JSON object`},
	}
	for _, test := range tests {
		got := ""
		if err := checkObject([]byte(test.config), arguments); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s:\n got %s\nwant %s", test.config, got, test.want)
		}
	}
}

// A value that a file gives counts as given, even if it is unknown.
func TestUnknownValues(t *testing.T) {
	arguments := arguments(reflect.TypeFor[bounded]())
	if err := CheckArguments(map[string]json.RawMessage{"user": []byte(`"u"`), "password": nil}, arguments); err != nil {
		t.Error(err)
	}
}

func TestBlocksAndDefaults(t *testing.T) {
	var got bounded
	arguments := arguments(reflect.TypeFor[bounded]())
	if err := decodeConfig([]byte(`{"profile": {"effort": "high"}, "lists": {"a": ["b"]}, "grid": [1e-1]}`), arguments, &got); err != nil {
		t.Fatal(err)
	}
	want := bounded{Wait: 5 * time.Second, Lists: map[string][]string{"a": {"b"}}, Grid: []float64{.1}}
	want.Profile.Effort, want.Profile.Budget = "high", 7
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestBounds(t *testing.T) {
	want := map[string]string{
		"heat": "from 0 to 2", "top": "more than 0 and at most 1", "wait": "more than 0s and at most 1m0s",
		"name": "from 2 to 4 characters", "stop": "at most 2 elements", "token": "",
	}
	for _, a := range arguments(reflect.TypeFor[bounded]()) {
		if text, ok := want[a.Name]; ok && a.Bounds() != text {
			t.Errorf("%s: %q, want %q", a.Name, a.Bounds(), text)
		}
	}
}

// A struct that cannot be described is a mistake in a program, and so are tags that contradict a
// type, each other or the default.
func TestImpossibleConfigs(t *testing.T) {
	for name, config := range map[string]any{
		"no struct": 0,
		"unknown type": struct {
			F []uint8 `config:"f"`
		}{},
		"a pointer to a path": struct {
			F *Path `config:"f"`
		}{},
		"wrong default": struct {
			F int `config:"f" default:"many"`
		}{},
		"a range of a text": struct {
			F string `config:"f" min:"1"`
		}{},
		"a pattern of a number": struct {
			F int `config:"f" pattern:"1"`
		}{},
		"two lower bounds": struct {
			F int `config:"f" min:"1" above:"0"`
		}{},
		"no number": struct {
			F int `config:"f" min:"one"`
		}{},
		"a bad pattern": struct {
			F string `config:"f" pattern:"("`
		}{},
		"a default out of range": struct {
			F int `config:"f" min:"1" default:"0"`
		}{},
		"another argument that is not there": struct {
			F string `config:"f" requires:"g"`
		}{},
		"a secret in a block": struct {
			F struct {
				G string `config:"g,secret"`
			} `config:"f"`
		}{},
		"a block in a block": struct {
			F struct {
				G struct {
					H int `config:"h"`
				} `config:"g"`
			} `config:"f"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			arguments(reflect.TypeOf(config))
		}()
	}
}
