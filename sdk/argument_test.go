package sdk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type allTypes struct {
	Text    string            `config:"text,required" doc:"d"`
	Key     string            `config:"key,secret"`
	Count   int               `config:"count" default:"15"`
	Share   float64           `config:"share" default:"0.5"`
	On      bool              `config:"on" default:"true"`
	Wait    time.Duration     `config:"wait" affects_output:"false" default:"1m30s"`
	File    Path              `config:"file"`
	Names   []string          `config:"names" default:"a,b"`
	Weights map[string]string `config:"weights"`
	Way     string            `config:"way" default:"up" one_of:"up,down"`
}

type shared struct {
	Model string `config:"model,required"`
	Heat  int    `config:"heat" default:"1"`
}

type embedding struct {
	Count int `config:"count" default:"2"`
	shared
	Heat int `config:"heat" default:"3" doc:"outer"`
}

func TestEmbeddedArguments(t *testing.T) {
	var got embedding
	s := SampleStage("s", "d", func(_ context.Context, _ Setup, c embedding) (Sampler, error) {
		got = c
		return nil, nil
	})
	if _, err := s.Open(t.Context(), Setup{}, []byte(`{"model": "m"}`)); err != nil {
		t.Fatal(err)
	}
	if want := (embedding{2, shared{Model: "m"}, 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var names []string
	for _, a := range s.Arguments {
		names = append(names, a.Name+a.Doc)
	}
	if diff := cmp.Diff([]string{"count", "model", "heatouter"}, names); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if _, err := s.Open(t.Context(), Setup{}, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "model: it is required") {
		t.Errorf("error %v", err)
	}
}

// open opens a stage of allTypes with a config and returns the decoded config.
func open(t *testing.T, config string) (allTypes, error) {
	t.Helper()
	var got allTypes
	s := SampleStage("s", "d", func(_ context.Context, _ Setup, c allTypes) (Sampler, error) {
		got = c
		return nil, nil
	})
	_, err := s.Open(t.Context(), Setup{}, []byte(config))
	return got, err
}

func TestConfig(t *testing.T) {
	defaults := allTypes{Text: "x", Count: 15, Share: .5, On: true, Wait: 90 * time.Second, Names: []string{"a", "b"}, Way: "up"}
	tests := []struct {
		name, config string
		change       func(*allTypes)
	}{
		{"defaults", `{"text": "x"}`, func(*allTypes) {}},
		{"null is not given", `{"text": "x", "count": null}`, func(*allTypes) {}},
		{"everything", `{"text": "y", "key": "k", "count": 0, "share": 2, "on": false, "wait": "2s", "file": "/f", "names": [], "weights": {"a": "1"}, "way": "down"}`,
			func(c *allTypes) {
				*c = allTypes{Text: "y", Key: "k", Share: 2, Wait: 2 * time.Second, File: "/f", Names: []string{}, Weights: map[string]string{"a": "1"}, Way: "down"}
			}},
	}
	for _, test := range tests {
		want := defaults
		test.change(&want)
		got, err := open(t, test.config)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	tests := []struct{ config, argument, text string }{
		{`{}`, "text", "required"},
		{`{"text": 3}`, "text", "of type string"},
		{`{"text": "x", "count": 1.5}`, "count", "of type int"},
		{`{"text": "x", "count": "3"}`, "count", "of type int"},
		{`{"text": "x", "wait": 5}`, "wait", `such as "1m30s"`},
		{`{"text": "x", "wait": "soon"}`, "wait", `"soon" is not a duration`},
		{`{"text": "x", "names": "a"}`, "names", "list(string)"},
		{`{"text": "x", "way": "left"}`, "way", "not one of up, down"},
		{`{"text": "x", "colour": 1}`, "colour", "no such argument"},
		{`[]`, "", "not a JSON object"},
	}
	for _, test := range tests {
		_, err := open(t, test.config)
		var fault *ArgumentError
		if errors.As(err, &fault) && fault.Argument != test.argument {
			t.Errorf("%s: the fault is of %q, want %q", test.config, fault.Argument, test.argument)
		}
		if err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v, want %q", test.config, err, test.text)
		}
	}
	_, err := open(t, `{"count": "x", "way": "left"}`)
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("three faults at once give %v", err)
	}
}

func TestDescription(t *testing.T) {
	s := SampleStage("s", "d", func(context.Context, Setup, allTypes) (Sampler, error) { return nil, nil }, Reads(ColumnText), Network(), PreferBatch(7))
	if len(s.Arguments) != 10 || !s.Network || s.Batch != 7 || s.Reads != Of(ColumnText) {
		t.Errorf("described as %+v", s)
	}
	want := Argument{Name: "way", Type: TypeString, Default: []byte(`"up"`), OneOf: []string{"up", "down"}}
	if d := cmp.Diff(want, s.Arguments[9]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !s.Arguments[0].Required || !s.Arguments[1].Secret || !s.Arguments[5].OutputUnaffected || s.Arguments[1].OutputUnaffected {
		t.Errorf("flags are lost: %+v", s.Arguments[:6])
	}
}

// An argument that a file does not give stays nil; 0 and false are values.
func TestOptionalArguments(t *testing.T) {
	type given struct {
		On    *bool    `config:"on"`
		Count *int     `config:"count" min:"0"`
		Share *float64 `config:"share"`
		Text  *string  `config:"text"`
	}
	type config struct {
		given
		Block given `config:"block"`
	}
	var got config
	s := SampleStage("s", "d", func(_ context.Context, _ Setup, c config) (Sampler, error) {
		got = c
		return nil, nil
	})
	for _, a := range s.Arguments[:4] {
		if a.Type != map[string]ArgumentType{"on": TypeBool, "count": TypeInt, "share": TypeFloat, "text": TypeString}[a.Name] {
			t.Errorf("%s has type %s", a.Name, a.Type)
		}
	}
	some := given{new(false), new(0), nil, new("")}
	for object, want := range map[string]config{
		`{}`: {},
		`{"on": false, "count": 0, "share": null, "text": ""}`: {given: some},
		`{"block": {"on": false, "count": 0, "text": ""}}`:     {Block: some},
	} {
		got = config{}
		if _, err := s.Open(t.Context(), Setup{}, []byte(object)); err != nil {
			t.Errorf("%s: %v", object, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(config{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
	if _, err := s.Open(t.Context(), Setup{}, []byte(`{"count": -1}`)); err == nil || !strings.Contains(err.Error(), "at least 0") {
		t.Errorf("error %v", err)
	}
}

func TestCodes(t *testing.T) {
	cause := errors.New("busy")
	err := Transient(cause, time.Second)
	var coded *Error
	if CodeOf(err) != CodeTransient || !errors.Is(err, cause) || !errors.As(err, &coded) || coded.RetryAfter != time.Second {
		t.Errorf("transient error %#v", err)
	}
	if CodeOf(cause) != CodeInternal || CodeOf(Invalid(cause)) != CodeInvalid {
		t.Error("codes are lost")
	}
}

func TestValidates(t *testing.T) {
	opened := 0
	open := func(context.Context, Setup, bounded) (Sampler, error) { opened++; return nil, nil }
	s := SampleStage("s", "d", open, Validates(func(c bounded) error {
		if c.Count > 5 && c.Heat > 1 {
			return &ArgumentError{Argument: "count", Err: errors.New("too many for such heat")}
		}
		return nil
	}))
	for config, want := range map[string]string{
		`{"count": 6}`:              "",
		`{"count": 6, "heat": 2}`:   "count: too many for such heat",
		`{"count": 6, "heat": 3}`:   "heat: it must be from 0 to 2, and is 3", // the function only sees valid values
		`{"count": 6, "colour": 3}`: "colour: there is no such argument; there are heat, top, count, wait, name, address, stop, grid, weights, ways, lists, key, token, user, password, profile",
	} {
		err := s.Validate([]byte(config))
		if got := fmt.Sprint(err); got != want && !(err == nil && want == "") {
			t.Errorf("%s: %s, want %q", config, got, want)
		}
		if _, failed := s.Open(t.Context(), Setup{}, []byte(config)); (failed == nil) != (err == nil) {
			t.Errorf("%s: validated with %v, opened with %v", config, err, failed)
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	defer func() {
		if recover() == nil {
			t.Error("a check of another config is taken")
		}
	}()
	SampleStage("s", "d", open, Validates(func(int) error { return nil }))
}

func TestCompleteConfig(t *testing.T) {
	for _, c := range []struct{ config, resolved, want string }{
		{"", "", ""},
		{`{"k":1}`, "", `{"k":1}`},
		{"", `{"precision":"half"}`, `{"precision":"half"}`},
		{`{"k":1,"precision":null}`, `{"precision":"half"}`, `{"k":1,"precision":"half"}`},
		{`{"precision":"single"}`, `{"precision":"half"}`, `{"precision":"single"}`},
	} {
		if got, err := CompleteConfig([]byte(c.config), []byte(c.resolved)); err != nil || string(got) != c.want {
			t.Errorf("%s with %s gives %s, %v; want %s", c.config, c.resolved, got, err, c.want)
		}
	}
	for _, bad := range [][2]string{{"[]", "{}"}, {"{}", "[]"}} {
		if _, err := CompleteConfig([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestUsageSaturates(t *testing.T) {
	u := Usage{InputTokens: 1, CachedTokens: 2, OutputTokens: math.MaxInt64}
	u.Add(u)
	u.Add(Usage{OutputTokens: math.MaxInt64})
	if want := (Usage{InputTokens: 2, CachedTokens: 4, OutputTokens: math.MaxUint64}); u != want {
		t.Errorf("got %+v, want %+v", u, want)
	}
}

// TestBelieves: a usage that a call cannot have is not believed, judged by the call's limit and by
// what models can do.
func TestBelieves(t *testing.T) {
	short := Usage{InputTokens: 100, OutputTokens: 32}
	for _, test := range []struct {
		most, used Usage
		want       bool
	}{
		{Usage{}, Usage{}, true},
		{Usage{}, Usage{InputTokens: 10_000_000, OutputTokens: 1_000_000}, true},
		{Usage{}, Usage{InputTokens: 20_000_000}, false},
		{Usage{}, Usage{OutputTokens: 2_000_000}, false},
		{short, Usage{InputTokens: 300, OutputTokens: 64}, true},
		{short, Usage{InputTokens: 100, OutputTokens: 80_000}, true}, // it thinks
		{short, Usage{InputTokens: 100, OutputTokens: 600_000}, false},
		{Usage{OutputTokens: 4_000_000}, Usage{OutputTokens: 4_000_000}, true},
		{Usage{OutputTokens: 4_000_000}, Usage{OutputTokens: 4_000_001}, false},
		{short, Usage{CachedTokens: 1 << 62}, false},
		{Usage{InputTokens: math.MaxUint64, OutputTokens: math.MaxUint64}, Usage{OutputTokens: math.MaxInt64}, false},
	} {
		if got := (Call{Most: test.most}).Believes(test.used); got != test.want {
			t.Errorf("a call of at most %+v that took %+v: %v", test.most, test.used, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	type config struct {
		URL string `config:"url" default:"https://a.example"`
	}
	open := func(context.Context, Setup, config) (Sampler, error) { return nil, nil }
	of := func(c config) map[string]string { return map[string]string{"": c.URL} }
	s := SampleStage("s", "d", open, Addresses(of))
	for given, want := range map[string]string{`{}`: "https://a.example", `{"url": "http://b"}`: "http://b", `{"url": 3}`: ""} {
		if got := s.Addresses([]byte(given))[""]; got != want {
			t.Errorf("with %s it calls %q, want %q", given, got, want)
		}
	}
	if got := SampleStage("s", "d", open).Addresses([]byte(`{}`)); got != nil {
		t.Errorf("a stage that does not say calls %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a function of another config passed")
		}
	}()
	SampleStage("s", "d", open, Addresses(func(int) map[string]string { return nil }))
}
