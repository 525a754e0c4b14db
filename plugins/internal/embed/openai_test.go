package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

const key = "sk-0123456789abcdef"

// openedOpenAI starts a server and opens the stage on it.
func openedOpenAI(t *testing.T, o modelserver.Options, arguments string) (*openAIEmbedder, *modelserver.Server, *apitest.Host) {
	t.Helper()
	server, host := modelserver.Serve(t, o), &apitest.Host{}
	e, err := openAt(t, server.URL, host, "", arguments)
	if err != nil {
		t.Fatal(err)
	}
	return e, server, host
}

func openAt(t *testing.T, address string, host sdk.Host, state, arguments string) (*openAIEmbedder, error) {
	t.Helper()
	config := fmt.Sprintf(`{"base_url": %q, "model": "tiny", "api_key": %q%s}`, address, key, arguments)
	setup := sdk.Setup{Host: host, StateDir: state, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	stage, err := OpenAI().Open(t.Context(), setup, []byte(config))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = stage.(*openAIEmbedder).Close() })
	return stage.(*openAIEmbedder), nil
}

func sizes(s *modelserver.Server) (all []int) {
	for _, a := range s.Asks() {
		all = append(all, len(a.Inputs))
	}
	return all
}

// unit returns the vector by which the server distinguishes texts on its first axis.
func unit(text string) []float32 { return []float32{3 * float32(len(text)), 4} }

func want(text string) []float32 {
	n := math.Hypot(3*float64(len(text)), 4)
	return []float32{float32(3 * float64(len(text)) / n), float32(4 / n)}
}

func number(n int) (all []string) {
	for i := range n {
		all = append(all, strings.Repeat("x", i+1))
	}
	return all
}

func TestVectors(t *testing.T) {
	for name, o := range map[string]modelserver.Options{
		"base64": {}, "base64 is ignored": {Base64: modelserver.Base64Ignored}, "base64 is refused": {Base64: modelserver.Base64Refused},
		"another order": {Shuffle: true}, "few inputs": {MaxInputs: 3},
	} {
		t.Run(name, func(t *testing.T) {
			o.Vector, o.Key = unit, key
			e, server, host := openedOpenAI(t, o, "")
			texts := append(number(10), "", " \n", "xx")
			vectors, err := e.Embed(t.Context(), sdk.RolePassage, texts)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				wanted := want(text)
				if strings.TrimSpace(text) == "" {
					wanted = []float32{0, 0}
				}
				if diff := cmp.Diff(wanted, vectors[i]); diff != "" {
					t.Errorf("vector of %q (-want +got):\n%s", text, diff)
				}
			}
			// Again: nothing is asked, and the same comes.
			calls := server.Calls()
			again, err := e.Embed(t.Context(), sdk.RoleQuery, texts)
			if diff := cmp.Diff(vectors, again); diff != "" || err != nil || server.Calls() != calls {
				t.Errorf("%d requests, error %v (-first +again):\n%s", server.Calls()-calls, err, diff)
			}
			if events := host.Events(); events[len(events)-1] != "release" {
				t.Errorf("events %v: vectors are cached before the call has ended", events)
			}
			if len(host.Cached()) != 10 || e.Dimension() != 2 {
				t.Errorf("%d vectors of %d numbers are cached", len(host.Cached()), e.Dimension())
			}
		})
	}
}

func TestRequestsAreWithinTheLimits(t *testing.T) {
	e, server, host := openedOpenAI(t, modelserver.Options{Vector: unit}, `, "max_inputs": 4, "dimension": 2, "dimensions": 2, "body": "{\"user\": \"me\"}", "query_prefix": "q: ", "passage_prefix": "p: "`)
	if _, err := e.Embed(t.Context(), sdk.RoleQuery, number(10)); err != nil {
		t.Fatal(err)
	}
	got := sizes(server)
	slices.Sort(got)
	if !slices.Equal(got, []int{2, 4, 4}) {
		t.Errorf("sizes of the requests %v; a given dimension needs no other", got)
	}
	for _, a := range server.Asks() {
		for _, part := range []string{`"dimensions":2`, `"user":"me"`, `"q: x`} {
			if !strings.Contains(string(a.Body), part) {
				t.Errorf("%s lacks %s", a.Body, part)
			}
		}
	}
	if calls := host.Calls(); len(calls) != 3 || calls[0].Endpoint != server.URL || calls[0].Tokens == 0 || host.Spent(t).InputTokens == 0 {
		t.Errorf("calls %+v, spent %+v", calls, host.Spent(t))
	}
	// The other role is another text.
	if _, err := e.Embed(t.Context(), sdk.RolePassage, number(1)); err != nil || server.Calls() != 4 {
		t.Errorf("%d requests, error %v", server.Calls(), err)
	}
	e, _, _ = openedOpenAI(t, modelserver.Options{}, `, "dimension": 8`)
	long := strings.Repeat("long ", 60_000)
	if parts := e.pack([]string{long, long + "a", long + "b", "x", long + long + long}); len(parts) != 3 || len(parts[0]) != 2 || len(parts[1]) != 2 || len(parts[2]) != 1 {
		t.Errorf("%d requests", len(parts))
	}
}

func TestRowsFailAlone(t *testing.T) {
	// The endpoint refuses a request with this text in it, whatever else it holds.
	bad := "refused"
	e, server, _ := openedOpenAI(t, modelserver.Options{Vector: func(text string) []float32 {
		if strings.Contains(text, "odd") {
			return []float32{0, 0}
		}
		return unit(text)
	}, Refuse: func(a modelserver.Ask) bool { return slices.Contains(a.Inputs, bad) }}, "")
	texts := append(number(30), bad, "odd")
	vectors, err := e.Embed(t.Context(), sdk.RolePassage, texts)
	var rows sdk.RowErrors
	if !errors.As(err, &rows) || len(rows) != 2 || sdk.CodeOf(rows[30]) != sdk.CodeInvalid || sdk.CodeOf(rows[31]) != sdk.CodeInvalid {
		t.Fatalf("error %v, want rows 30 and 31", err)
	}
	for i := range 30 {
		if vectors[i] == nil {
			t.Errorf("row %d has no vector", i)
		}
	}
	if server.Calls() > 14 { // two of each size, and one to find the dimension
		t.Errorf("sizes of the requests: %v", sizes(server))
	}
	if e.inputs.Load() != 256 {
		t.Errorf("requests of %d texts from now on: there were not too many", e.inputs.Load())
	}
}

func TestFewerInputsAreLearnt(t *testing.T) {
	e, server, _ := openedOpenAI(t, modelserver.Options{Vector: unit, MaxInputs: 5}, `, "dimension": 2`)
	for from := 0; from < 40; from += 20 {
		if _, err := e.Embed(t.Context(), sdk.RolePassage, number(40)[from:from+20]); err != nil {
			t.Fatal(err)
		}
	}
	got := sizes(server)
	if last := got[len(got)-4:]; !slices.Equal(last, []int{5, 5, 5, 5}) {
		t.Errorf("sizes of the requests %v, want four of 5 at last", got)
	}
}

func TestARefusalOfEverything(t *testing.T) {
	e, server, _ := openedOpenAI(t, modelserver.Options{Refuse: func(modelserver.Ask) bool { return true }}, `, "dimension": 8`)
	_, err := e.Embed(t.Context(), sdk.RolePassage, number(200))
	var rows sdk.RowErrors
	if err == nil || errors.As(err, &rows) || sdk.CodeOf(err) != sdk.CodeInvalid || server.Calls() > 8 {
		t.Errorf("%d requests, error %v; want the batch to fail after a few", server.Calls(), err)
	}
}

func TestOpenAIErrors(t *testing.T) {
	for name, test := range map[string]struct {
		fault modelserver.Fault
		code  sdk.Code
		rows  bool
	}{
		"fewer vectors": {modelserver.Fault{Kind: modelserver.Fewer}, sdk.CodeTransient, false},
		"more vectors":  {modelserver.Fault{Kind: modelserver.More}, sdk.CodeTransient, false},
		"nulls":         {modelserver.Fault{Kind: modelserver.NaN}, sdk.CodeInvalid, true},
		"429":           {modelserver.Fault{Kind: modelserver.Status, Status: 429, Wait: time.Second, Form: modelserver.Seconds}, sdk.CodeTransient, false},
		"half a body":   {modelserver.Fault{Kind: modelserver.HalfBody}, sdk.CodeTransient, false},
		"broken JSON":   {modelserver.Fault{Kind: modelserver.Broken}, sdk.CodeTransient, false},
		"a page":        {modelserver.Fault{Kind: modelserver.Page}, sdk.CodeInvalid, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.fault.Calls = []int{0}
			e, server, _ := openedOpenAI(t, modelserver.Options{Faults: []modelserver.Fault{test.fault}, Dimension: 8}, `, "dimension": 8`)
			texts := []string{"a", "b"}
			_, err := e.Embed(t.Context(), sdk.RoleQuery, texts)
			var rows sdk.RowErrors
			if errors.As(err, &rows) != test.rows {
				t.Fatalf("error %v", err)
			}
			if test.rows {
				err = rows[1]
			}
			if sdk.CodeOf(err) != test.code {
				t.Errorf("error %v has code %d, want %d", err, sdk.CodeOf(err), test.code)
			}
			if vectors, err := e.Embed(t.Context(), sdk.RoleQuery, texts); err != nil || len(vectors[1]) != 8 || server.Calls() != 2 {
				t.Errorf("then %v, error %v", vectors, err)
			}
		})
	}
}

// TestOpensLate opens the stage while its service is still starting.
func TestOpensLate(t *testing.T) {
	state := t.TempDir()
	starting := modelserver.Fault{Kind: modelserver.Status, Status: http.StatusInternalServerError, Calls: []int{0}}
	server := modelserver.Serve(t, modelserver.Options{Dimension: 5, Faults: []modelserver.Fault{starting}})
	host := &apitest.Host{}
	e, err := openAt(t, server.URL, host, state, "")
	if err != nil || e.Dimension() != 5 || server.Calls() != 2 || len(host.Calls()) != 2 {
		t.Errorf("dimension of %v after %d requests, error %v", e, server.Calls(), err)
	}
}

func TestDimension(t *testing.T) {
	state := t.TempDir()
	host := &apitest.Host{}
	server := modelserver.Serve(t, modelserver.Options{Dimension: 5})
	e, err := openAt(t, server.URL, host, state, "")
	if err != nil || e.Dimension() != 5 {
		t.Fatalf("dimension of %v, error %v", e, err)
	}
	if n, cached := len(host.Calls()), len(host.Cached()); n != 1 || cached != 0 {
		t.Errorf("%d calls were permitted, %d vectors cached", n, cached)
	}
	print := e.Fingerprint()
	if e, err = openAt(t, server.URL, host, state, ""); err != nil || e.Dimension() != 5 || server.Calls() != 1 || e.Fingerprint() != print {
		t.Errorf("again: %d requests, error %v", server.Calls(), err)
	}
	// Another model has another note; a dimension that is asked for is known.
	for arguments, calls := range map[string]int{`, "body": "{\"user\": \"me\"}"`: 2, `, "dimensions": 3`: 2, `, "dimension": 5`: 2} {
		if e, err = openAt(t, server.URL, host, state, arguments); err != nil || server.Calls() > calls {
			t.Errorf("%s: %d requests, error %v", arguments, server.Calls(), err)
		} else if same := e.Fingerprint() == print; same != strings.Contains(arguments, `"dimension":`) {
			t.Errorf("%s: the same fingerprint: %v", arguments, same)
		}
	}
	for _, arguments := range []string{`, "query_prefix": "q"`, `, "passage_prefix": "q"`} {
		if e, err = openAt(t, server.URL, host, state, arguments); err != nil || e.Fingerprint() == print {
			t.Errorf("%s: error %v, or the same fingerprint", arguments, err)
		}
	}

	// The model behind the name changes: the note goes, the next start asks.
	other := modelserver.Serve(t, modelserver.Options{Dimension: 6})
	if e, err = openAt(t, other.URL, host, state, ""); err != nil {
		t.Fatal(err)
	}
	e.dimension = 5
	if _, err := e.Embed(t.Context(), sdk.RoleQuery, []string{"a"}); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "6 numbers, not 5") {
		t.Errorf("error %v", err)
	}
	if e, err = openAt(t, other.URL, host, state, ""); err != nil || e.Dimension() != 6 || other.Calls() != 3 {
		t.Errorf("%d requests, error %v", other.Calls(), err)
	}

	gone := modelserver.Start(modelserver.Options{})
	gone.Close()
	synctest.Test(t, func(t *testing.T) {
		if _, err := openAt(t, gone.URL, host, "", ""); err == nil || !strings.Contains(err.Error(), "argument dimension") {
			t.Errorf("no server: error %v", err)
		}
	})
}

func TestStops(t *testing.T) {
	e, _, host := openedOpenAI(t, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Hang, Share: 1}}}, `, "dimension": 8`)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := e.Embed(ctx, sdk.RoleQuery, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	host.Refuse = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
	if _, err := e.Embed(t.Context(), sdk.RoleQuery, []string{"a"}); sdk.CodeOf(err) != sdk.CodeStopped {
		t.Errorf("error %v", err)
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string][]float32{
		`[1, 2.5]`: {1, 2.5}, `"AACAPwAAIEA="`: {1, 2.5}, `[]`: nil, `""`: nil, `"AACA"`: nil, `"?"`: nil, `[1, null]`: nil, `[1e99]`: nil, `{}`: nil, `[[1]]`: nil,
	} {
		if got, err := decode([]byte(text)); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("decode(%s) = %v, %v; want %v", text, got, err, want)
		}
	}
	inf := float32(math.Inf(1))
	for _, v := range [][]float32{{0, 0}, {inf, 1}, {float32(math.NaN()), 1}} {
		if openAINormalise(v) == nil {
			t.Errorf("%v has a norm", v)
		}
	}
}

func TestArguments(t *testing.T) {
	for config, argument := range map[string]string{
		`{}`:                             "model",
		`{"model": ""}`:                  "model",
		`{"model": "m", "base_url": ""}`: "base_url",
		`{"model": "m", "body": "{\"input\": []}"}`:       "body",
		`{"model": "m", "dimension": -1}`:                 "dimension",
		`{"model": "m", "dimensions": 1000000}`:           "dimensions",
		`{"model": "m", "dimension": 4, "dimensions": 3}`: "dimension",
		`{"model": "m", "max_inputs": 4096}`:              "max_inputs",
		`{"model": "m", "timeout": "0s"}`:                 "timeout",
	} {
		_, err := OpenAI().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != argument {
			t.Errorf("%s: error %v, want one about %s", config, err, argument)
		}
	}
}

func TestOpenAIConformance(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{})
	sdktest.Stage(t, OpenAI(), fmt.Sprintf(`{"base_url": %q, "model": "tiny"}`, server.URL))
}

// FuzzDecode reads what a server sends as a vector: a usable one has norm 1.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`[1, 2.5]`, `"AACAPwAAIEA="`, `[null]`, `[1e-40, 1e38]`, `"AADAfwAAgD8="`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := decode(text)
		if err != nil || openAINormalise(v) != nil {
			return
		}
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if math.Abs(sum-1) > 1e-3 {
			t.Errorf("%s: squared norm %v", text, sum)
		}
	})
}
