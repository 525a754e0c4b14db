package sample

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
)

var backendsUsual = chatmodel.Config{API: "openai", BaseURL: "http://127.0.0.1:1/v1", Model: "m", Service: api.Service{APIKey: "main-key", Headers: map[string]string{"X": "secret"}}}

func TestConfigs(t *testing.T) {
	const other = "http://127.0.0.1:2/v1"
	for name, test := range map[string]struct {
		arguments BackendArguments
		want      chatmodel.Config
	}{
		"another key":     {BackendArguments{Keys: map[string]string{"x": "k"}}, chatmodel.Config{BaseURL: backendsUsual.BaseURL, Model: "m", Limited: backendsUsual.BaseURL + " (x)", Service: api.Service{APIKey: "k", Headers: backendsUsual.Headers}}},
		"another address": {BackendArguments{URLs: map[string]string{"x": other}}, chatmodel.Config{BaseURL: other, Model: "m"}},
		"another address and key": {
			BackendArguments{URLs: map[string]string{"x": other}, Keys: map[string]string{"x": "k"}}, chatmodel.Config{BaseURL: other, Model: "m", Service: api.Service{APIKey: "k"}},
		},
		"another model": {BackendArguments{Models: map[string]string{"x": "n"}}, chatmodel.Config{BaseURL: backendsUsual.BaseURL, Model: "n", Limited: backendsUsual.BaseURL + " (x)", Service: backendsUsual.Service}},
		"another API": {
			BackendArguments{APIs: map[string]string{"x": "anthropic"}, Models: map[string]string{"x": "claude"}}, chatmodel.Config{API: "anthropic", BaseURL: "https://api.openai.com/v1", Model: "claude"},
		},
	} {
		test.arguments.Backends = []string{"x"}
		if test.want.API == "" {
			test.want.API = "openai"
		}
		if err := test.arguments.Check(backendsUsual); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]chatmodel.Config{backendsUsual, test.want}, test.arguments.all(backendsUsual)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCheck(t *testing.T) {
	x := []string{"x"}
	for want, a := range map[string]BackendArguments{
		`backends[0]: main is the service`:                           {Backends: []string{"main"}, Models: map[string]string{"main": "n"}},
		`backends[1]: "x" stands in the list already`:                {Backends: []string{"x", "x"}, Models: map[string]string{"x": "n"}},
		`backends[0]: "x" is the main service again`:                 {Backends: x},
		`backend_models["y"]: "y" is not in backends`:                {Backends: x, Models: map[string]string{"x": "n", "y": "n"}},
		`backend_keys["y"]: "y" is not in backends`:                  {Backends: x, Keys: map[string]string{"x": "k", "y": "k"}},
		`backend_keys["x"]: it holds a character that no key has`:    {Backends: x, Keys: map[string]string{"x": "k y"}},
		`backend_urls["x"]: it must hold no name, password or`:       {Backends: x, URLs: map[string]string{"x": "http://me:pw@127.0.0.1:2/v1"}},
		`shares["y"]: "y" is neither main nor in backends`:           {Backends: x, Models: map[string]string{"x": "n"}, Shares: map[string]float64{"y": 1}},
		`shares: at least one share must be more than 0`:             {Backends: x, Models: map[string]string{"x": "n"}, Shares: map[string]float64{"main": 0}},
		`backend_apis["y"]: "y" is not in backends`:                  {Backends: x, Models: map[string]string{"x": "n"}, APIs: map[string]string{"y": "anthropic"}},
		`backend_urls["z"]: it must be an address such as http://12`: {Backends: []string{"z"}, URLs: map[string]string{"z": "http://%zz"}},
	} {
		var all []string
		for _, e := range sdk.ArgumentErrors(a.Check(backendsUsual)) {
			all = append(all, e.Error())
		}
		if !slices.ContainsFunc(all, func(text string) bool { return strings.HasPrefix(text, want) }) {
			t.Errorf("%q: %q", want, all)
		}
	}
}

func set(names int, shares map[string]float64) *Backends {
	a := BackendArguments{Models: map[string]string{}, Shares: shares}
	for i := range names {
		name := fmt.Sprintf("b%d", i)
		a.Backends = append(a.Backends, name)
		a.Models[name] = name
	}
	return NewBackends(backendsUsual, a, sdk.Setup{})
}

// Answers are divided by the file's shares, each always in the same way. A new service takes only its own share from
// the others.
func TestChoose(t *testing.T) {
	shares := map[string]float64{"main": 1, "b0": 2, "b1": 0}
	one, again, more := set(2, shares), set(2, shares), set(3, map[string]float64{"main": 1, "b0": 2, "b2": 3})
	const n = 6000
	given := map[string]int{}
	moved := 0
	for i := range n {
		key := sdk.KeyOf(fmt.Sprint(i / 4))
		b := one.Choose(key, i%4)
		given[b.name]++
		if other := again.Choose(key, i%4); other.name != b.name {
			t.Fatalf("answer %d comes from %s, and then from %s", i, b.name, other.name)
		}
		if other := more.Choose(key, i%4); other.name != b.name {
			if moved++; other.name != "b2" {
				t.Errorf("answer %d goes from %s to %s", i, b.name, other.name)
			}
		}
	}
	if main, b0 := given["main"], given["b0"]; main+b0 != n || main < 1850 || main > 2150 { // 2,000, with a standard deviation of 37
		t.Errorf("given %v", given)
	}
	if moved < 2850 || moved > 3150 {
		t.Errorf("%d moved, want about 3000", moved)
	}
	if b := set(2, nil).Choose(sdk.KeyOf("x"), 0); b.name != MainBackend {
		t.Errorf("without shares: %s", b.name)
	}
}

// TestDo has services that behave in one way each.
func TestDo(t *testing.T) {
	busy, busier := sdk.Transient(errors.New("busy"), time.Second), sdk.Transient(errors.New("busier"), time.Minute)
	failed := sdk.Transient(errors.New("500"), 0)
	down := &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("down")}
	stopped := &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
	refused := sdk.Refused(errors.New("filtered"))
	for name, test := range map[string]struct {
		errs  []error // of each service
		asked string
		want  error
	}{
		"the first serves":            {[]error{nil, nil, nil}, "0", nil},
		"the second serves":           {[]error{down, nil, nil}, "01", nil},
		"the last serves":             {[]error{busy, failed, nil}, "012", nil},
		"one item is refused":         {[]error{refused, nil, nil}, "0", refused},
		"the run has to end":          {[]error{stopped, nil, nil}, "0", stopped},
		"all are busy":                {[]error{busier, failed, busy}, "012", busy},
		"all fail":                    {[]error{failed, failed, failed}, "012", failed},
		"one is busy, others down":    {[]error{down, busy, down}, "012", busy},
		"nobody waits for any":        {[]error{down, down, down}, "0120", down},
		"a bad request elsewhere too": {[]error{down, sdk.Invalid(errors.New("400")), nil}, "01", sdk.Invalid(errors.New("400"))},
	} {
		s := set(2, nil)
		asked := ""
		err := s.Do(t.Context(), s.All[0], func(_ context.Context, b *Backend) error {
			asked += fmt.Sprint(b.Index)
			return test.errs[b.Index]
		})
		if asked != test.asked || fmt.Sprint(err) != fmt.Sprint(test.want) {
			t.Errorf("%s: asked %s, error %v", name, asked, err)
		}
	}
}
