package chatmodel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func model(t *testing.T, c chatmodel.Config, host sdk.Host) *chatmodel.Model {
	t.Helper()
	if c.BaseURL == "" {
		c.BaseURL = "http://127.0.0.1:1/v1"
	}
	if c.Model == "" {
		c.Model = "tiny"
	}
	if c.MaxTokensField == "" {
		c.MaxTokensField = "auto"
	}
	c.Timeout = 5 * time.Second
	m := chatmodel.New(c, sdk.Setup{Host: host})
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// ask sends a question and returns the text of the first answer.
func ask(t *testing.T, m *chatmodel.Model, r dialect.Request) (text string, err error) {
	t.Helper()
	r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: "q"}}
	err = m.Send(t.Context(), r, func(got dialect.Reply, _ dialect.Request) (err error) {
		text, err = got.Choices[0].Written()
		return err
	})
	return text, err
}

func TestSend(t *testing.T) {
	tests := []struct {
		name  string
		fault modelserver.Kind
		text  string
		code  sdk.Code
		want  string // part of the answer, or of the error
		calls int    // 0: one
	}{
		{name: "an answer", text: " yes \n", want: "yes"},
		{name: "behind thoughts", text: "<think>no</think>\nyes", want: "yes"},
		{name: "nothing but thoughts", text: "<think>no", code: sdk.CodeInvalid, want: "wrote nothing"},
		{name: "nothing", text: " ", code: sdk.CodeInvalid, want: "wrote nothing"},
		{name: "cut thoughts", text: "<think>no, or else yes, but then, on the other hand, it may be", code: sdk.CodeInvalid, want: "wrote nothing", calls: 2},
		{name: "a cut text is one", text: strings.Repeat("yes ", 12), want: strings.TrimSpace(strings.Repeat("yes ", 9))},
		{name: "refused", fault: modelserver.Refusal, text: "yes", code: sdk.CodeInvalid, want: "the model refused: I can't help"},
		{name: "filtered", fault: modelserver.Filter, text: "yes", code: sdk.CodeInvalid, want: "filter"},
		{name: "broken off", fault: modelserver.BrokeOff, text: "yes", code: sdk.CodeTransient, want: "broke off"},
		{name: "no choice", fault: modelserver.Fewer, text: "yes", code: sdk.CodeTransient, want: "no choices"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := modelserver.Options{Answer: func(modelserver.Ask, int) string { return test.text }}
			if test.fault != 0 {
				o.Faults = []modelserver.Fault{{Kind: test.fault, Share: 1}}
			}
			host := &apitest.Host{}
			m := model(t, chatmodel.Config{BaseURL: modelserver.Serve(t, o).URL}, host)
			got, err := ask(t, m, m.Request(9, 32))
			if test.code != 0 {
				if sdk.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			} else if err != nil || got != test.want {
				t.Errorf("got %q, error %v", got, err)
			}
			if calls := host.Calls(); len(calls) != max(1, test.calls) || calls[0].Tokens < 9 || len(host.Results(t)) != len(calls) {
				t.Errorf("calls %+v", calls)
			}
		})
	}
}

// The other fields of a server's reply may have any form.
func TestSendReadsChoicesAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"created": 1.5, "id": 7, "usage": {"prompt_tokens": 3.0}, "choices": [{"message": {"content": "yes"}}]}`)
	}))
	defer server.Close()
	m := model(t, chatmodel.Config{BaseURL: server.URL}, nil)
	got, err := ask(t, m, m.Request(0, 9))
	if err != nil || got != "yes" {
		t.Errorf("got %q, error %v", got, err)
	}
}

// TestKey changes every field of a model's config. All of them change the key of an answer, except secrets and fields
// that do not change results.
func TestKey(t *testing.T) {
	base := func() chatmodel.Config {
		return chatmodel.Config{BaseURL: "http://127.0.0.1:2/v1", Model: "tiny", MaxTokensField: "auto", Service: api.Service{Timeout: time.Second}}
	}
	values := map[string]any{
		"BaseURL": "http://127.0.0.1:3/v1", "Model": "other", "MaxTokensField": "max_completion_tokens", "PromptCacheKey": "k", "CacheControl": true,
		"APIKey": "k", "Headers": map[string]string{"A": "b"}, "Body": `{"a": 1}`, "Timeout": time.Minute, "APIVersion": "1", "API": "anthropic", "Batch": true,
		"Probe": true, "Profile": profile.Given{Effort: "low"},
	}
	key := func(c chatmodel.Config, parts ...string) sdk.Key {
		m := chatmodel.New(c, sdk.Setup{})
		r := m.Request(9, 32)
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: "q", Shared: true}}
		return m.Key(r, parts...)
	}
	plain, seen := key(base()), map[sdk.Key]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[chatmodel.Config]()) {
		if f.Anonymous || f.Tag.Get("config") == "" {
			continue
		}
		c, value := base(), values[f.Name]
		if value == nil {
			t.Fatalf("%s is new: give it another value here", f.Name)
		}
		reflect.ValueOf(&c).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(value))
		changed := key(c)
		neutral := f.Tag.Get("affects_output") == "false" || strings.Contains(f.Tag.Get("config"), ",secret")
		if other := seen[changed]; neutral != (changed == plain) || !neutral && other != "" {
			t.Errorf("%s changes the key: %t; its key is also that of %q", f.Name, changed != plain, other)
		}
		seen[changed] = f.Name
	}
	if key(base(), "part") == plain {
		t.Error("what is made of the answer does not change the key")
	}
}

func TestTurn(t *testing.T) {
	m := model(t, chatmodel.Config{}, nil)
	a, b := sdk.KeyOf("a"), sdk.KeyOf("b")
	leave, err := m.Turn(t.Context(), a, b, a)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Bool
	done := make(chan error)
	go func() {
		again, err := m.Turn(t.Context(), b)
		if err == nil && !left.Load() {
			err = errors.New("two have the same key")
		}
		if err == nil {
			again()
		}
		done <- err
	}()
	time.Sleep(5 * time.Millisecond)
	left.Store(true)
	leave()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestAzure asks a deployment.
func TestAzure(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{})
	m := model(t, chatmodel.Config{BaseURL: strings.TrimSuffix(server.URL, "/v1"), Model: "my-gpt", APIVersion: "2024-10-21", Service: api.Service{APIKey: "secret-key"}}, nil)
	if _, err := ask(t, m, m.Request(0, 9)); err != nil {
		t.Fatal(err)
	}
	got := server.Asks()[0]
	if want := "/openai/deployments/my-gpt/chat/completions"; got.Path != want || got.Header.Get("Api-Key") != "secret-key" || slices.Contains(got.Header["Authorization"], "Bearer secret-key") {
		t.Errorf("asked %s with %v", got.Path, got.Header)
	}
}

// TestAnthropic asks through Anthropic's API. Fields that the model refuses are left out there, too.
func TestAnthropic(t *testing.T) {
	server := serve(t, "refuses-temperature")
	host := &apitest.Host{}
	m := model(t, chatmodel.Config{API: "anthropic", BaseURL: server.URL, Service: api.Service{APIKey: "secret-key"}}, host)
	for calls := 2; calls < 4; calls++ {
		if text, err := ask(t, m, everything(m)); err != nil || text != `{"label": "a"}` || server.Calls() != calls {
			t.Errorf("%q after %d calls, error %v", text, server.Calls(), err)
		}
	}
	got := server.Asks()[1]
	if got.Path != "/v1/messages" || got.Header.Get("X-Api-Key") != "secret-key" || got.Header.Get("Authorization") != "" || strings.Contains(string(got.Body), "temperature") {
		t.Errorf("asked %s with %v: %s", got.Path, got.Header, got.Body)
	}
	if spent := host.Spent(t); spent.InputTokens == 0 || spent.OutputTokens == 0 {
		t.Errorf("spent %+v", spent)
	}
}

// The default address belongs to the API's own service.
func TestAddress(t *testing.T) {
	const openAI, gateway = "https://api.openai.com/v1", "http://127.0.0.1:1/v1"
	for _, test := range []struct{ api, url, want string }{
		{"openai", openAI, openAI}, {"anthropic", openAI, "https://api.anthropic.com/v1"}, {"anthropic", gateway + "/", gateway}, {"openai", gateway, gateway},
	} {
		c := chatmodel.Config{API: test.api, BaseURL: test.url}
		if m := model(t, c, nil); c.Address() != test.want || m.Address() != test.want {
			t.Errorf("%+v: %s, %s", test, c.Address(), m.Address())
		}
	}
}

func TestCheck(t *testing.T) {
	const gateway = "http://127.0.0.1:1/v1"
	for _, test := range []struct {
		config   chatmodel.Config
		argument string // the wrong argument; empty: none
	}{
		{chatmodel.Config{BaseURL: "https://api.openai.com/v1"}, ""},
		{chatmodel.Config{BaseURL: gateway, APIVersion: "2024-10-21"}, ""},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic"}, ""},
		{chatmodel.Config{BaseURL: "https://api.openai.com/v1", API: "anthropic"}, ""},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic", APIVersion: "2024-10-21"}, "api_version"},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic", Completion: true}, "api"},
		{chatmodel.Config{BaseURL: gateway, API: "anthropic", Service: api.Service{Body: `{"system": "s"}`}}, "body"},
		{chatmodel.Config{BaseURL: gateway, Service: api.Service{Body: `{"stream": true}`}}, "body"},
		{chatmodel.Config{BaseURL: gateway, Service: api.Service{Body: `{"system": "s"}`}}, ""},
	} {
		err := test.config.Check()
		wrong := new(sdk.ArgumentError)
		if errors.As(err, &wrong) != (test.argument != "") || wrong.Argument != test.argument {
			t.Errorf("%+v: %v, want an error of %q", test.config, err, test.argument)
		}
	}
}

// serve starts a server that answers with an object, and has the given behaviours.
func serve(t *testing.T, behaviours ...string) *modelserver.Server {
	o := modelserver.Named(behaviours...)
	o.Answer = func(modelserver.Ask, int) string { return `{"label": "a"}` }
	return modelserver.Serve(t, o)
}

// everything returns a request with every field that a model may refuse.
func everything(m *chatmodel.Model) dialect.Request {
	r, half, seven := m.Request(0, 32), .5, 7
	r.Temperature, r.TopP, r.Seed, r.Stop, r.Logprobs = &half, &half, &seven, []string{"\n"}, true
	r.Schema = json.RawMessage(`{"type":"object","properties":{"label":{"type":"string","enum":["a","b"]}},"required":["label"],"additionalProperties":false}`)
	return r
}

// TestWhatModelsTake asks servers that refuse a field or a form of structured answers, or that think or stream. The
// question is answered in each case. The finding is reported once and stored, and the next run sends one request.
func TestWhatModelsTake(t *testing.T) {
	const object = `"type":"json_object"`
	tests := []struct {
		behaviours string
		calls      int    // of the first question
		without    string // not in the last request
		with       string
	}{
		{"", 1, "", `"type":"json_schema"`},
		{"refuses-temperature", 2, "temperature", `"stop"`},
		{"refuses-namelessly", 2, "temperature", `"stop"`},
		{"refuses-stop", 2, `"stop"`, "temperature"},
		{"refuses-seed", 2, "seed", "temperature"},
		{"refuses-logprobs", 2, "logprobs", "temperature"},
		{"refuses-max-tokens", 2, `"max_tokens"`, `"max_completion_tokens":32`},
		{"refuses-max-tokens refuses-max-completion-tokens", 3, "max", "temperature"},
		{"refuses-schema", 2, "json_schema", object},
		{"refuses-schema refuses-object", 3, "response_format", `"tool_choice"`},
		{"refuses-schema refuses-object refuses-tools", 4, "tool", "Answer with a JSON object"},
		{"reasons-like-openai", 6, "temperature", "max_completion_tokens"},
		{"streams-only", 2, "", `"include_usage":true`},
		{"thinks-in-tags", 2, `"stop"`, "temperature"},
		{"thinks-in-a-field", 2, `"stop"`, "temperature"},
		{"thinks-in-other-tags", 2, `"stop"`, "temperature"},
		{"thinks-in-channels", 2, `"stop"`, "temperature"},
		{"thinks-silently", 2, `"stop"`, "temperature"},
		{"stops-in-thoughts", 2, `"stop"`, "temperature"},
	}
	for _, test := range tests {
		t.Run(test.behaviours, func(t *testing.T) {
			server := serve(t, strings.Fields(test.behaviours)...)
			host, log := &apitest.Host{}, &strings.Builder{}
			open := func() *chatmodel.Model {
				m := chatmodel.New(chatmodel.Config{BaseURL: server.URL, Model: "tiny", MaxTokensField: "auto", Service: api.Service{Timeout: time.Minute}},
					sdk.Setup{Host: host, Log: slog.New(slog.NewTextHandler(log, nil))})
				t.Cleanup(func() { _ = m.Close() })
				return m
			}
			m := open()
			text, err := ask(t, m, everything(m))
			if err != nil || text != `{"label": "a"}` {
				t.Errorf("%q, error %v", text, err)
			}
			asks := server.Asks()
			last := string(asks[len(asks)-1].Body)
			if len(asks) != test.calls || test.without != "" && strings.Contains(last, test.without) || !strings.Contains(last, test.with) {
				t.Errorf("asked %d times, at last %s", len(asks), last)
			}
			if said := strings.Count(log.String(), "level=WARN"); said > test.calls-1 {
				t.Errorf("said %d times:\n%s", said, log)
			}
			if _, err := ask(t, m, everything(m)); err != nil || server.Calls() != test.calls+1 {
				t.Errorf("asked %d times with the second question, error %v", server.Calls(), err)
			}
			m = open()
			if _, err := ask(t, m, everything(m)); err != nil || server.Calls() != test.calls+2 {
				t.Errorf("asked %d times with that of the next run, error %v", server.Calls(), err)
			}
			var all sdk.Usage
			for _, r := range host.Results(t) {
				all.Add(r.Usage)
			}
			if all.InputTokens == 0 {
				t.Errorf("usage %+v", all)
			}
		})
	}
}

// TestManyAtOnce: if several requests are refused at once, all of them are repeated.
func TestManyAtOnce(t *testing.T) {
	server := serve(t, "reasons-like-openai", "refuses-schema")
	host := &apitest.Host{}
	m := model(t, chatmodel.Config{BaseURL: server.URL}, host)
	var calls sync.WaitGroup
	for range 32 {
		calls.Go(func() {
			if text, err := ask(t, m, everything(m)); err != nil || text != `{"label": "a"}` {
				t.Errorf("%q, error %v", text, err)
			}
		})
	}
	calls.Wait()
}

// TestFormsRefusedWithoutAWord: if a server refuses a request without a reason, the next form is tried. If it accepts
// no form, the first error is returned. If it has obeyed a form before, the refusal has another reason.
func TestFormsRefusedWithoutAWord(t *testing.T) {
	refuse := func(a modelserver.Ask) bool { return strings.Contains(string(a.Body), "response_format") }
	server := modelserver.Serve(t, modelserver.Options{Refuse: func(a modelserver.Ask) bool { return refuse(a) }})
	host := &apitest.Host{}
	m := model(t, chatmodel.Config{BaseURL: server.URL}, host)
	for calls := 3; calls < 5; calls++ { // schema, object, tool; then tool
		if text, err := ask(t, m, everything(m)); err != nil || text != `{"label": "a"}` || server.Calls() != calls {
			t.Errorf("%q after %d calls, error %v", text, server.Calls(), err)
		}
	}
	refuse = func(modelserver.Ask) bool { return true }
	if _, err := ask(t, m, everything(m)); sdk.CodeOf(err) != sdk.CodeInvalid || server.Calls() != 5 {
		t.Errorf("%d calls, error %v", server.Calls(), err)
	}
	other := model(t, chatmodel.Config{BaseURL: server.URL}, &apitest.Host{})
	if _, err := ask(t, other, everything(other)); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "as the test says") || server.Calls() != 9 {
		t.Errorf("%d calls, error %v", server.Calls(), err)
	}
}

// TestRoomForThoughts: if thoughts use up the limit of an answer, the limit is raised. The usage of the reply covers
// all calls.
func TestRoomForThoughts(t *testing.T) {
	server := serve(t, "thinks-silently")
	for name, test := range map[string]struct {
		maxTokens int
		limits    []string
	}{
		"usual":     {0, []string{`"max_tokens":9}`, `"max_tokens":4105}`}},
		"a limit":   {7, []string{`"max_tokens":7}`, `"max_tokens":4103}`}},
		"unlimited": {-1, []string{`"messages"`}},
	} {
		t.Run(name, func(t *testing.T) {
			before := server.Calls()
			host := &apitest.Host{}
			m := model(t, chatmodel.Config{BaseURL: server.URL}, host)
			r := m.Request(test.maxTokens, 9)
			r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: "q"}}
			var usage sdk.Usage
			err := m.Send(t.Context(), r, func(reply dialect.Reply, _ dialect.Request) error {
				usage = reply.Usage
				_, err := reply.Choices[0].Written()
				return err
			})
			if err != nil {
				t.Error(err)
			}
			asks := server.Asks()[before:]
			if len(asks) != len(test.limits) || usage != host.Spent(t) {
				t.Fatalf("%d calls, usage %+v, spent %+v", len(asks), usage, host.Spent(t))
			}
			for i, a := range asks {
				if !strings.Contains(string(a.Body), test.limits[i]) {
					t.Errorf("call %d: %s", i, a.Body)
				}
			}
		})
	}
}

// TestForecast: a forecast uses the model's profile and sends no request.
func TestForecast(t *testing.T) {
	host := &apitest.Host{}
	prompt := strings.Repeat("A text. ", 100)
	for known, want := range map[string]struct {
		in, most, out, low, high, mostOut uint64
		requests                          int
		unknown                           string
	}{
		`{}`: {in: 200 + 4, out: 2 * 5, low: 2 * 5, high: 2 * (5 + 4*600), requests: 1, unknown: "it is not known whether the model thinks"},
		`{"thinking": "no", "n": "no", "bytes_per_token": 8}`: {in: 2 * (100 + 4), out: 2 * 5, low: 2 * 5, high: 2 * 5, most: 2 * 879, mostOut: 2 * 9, requests: 2},
		`{"thinking": "no", "template_tokens": 30}`:           {in: 200 + 30, out: 2 * 5, low: 2 * 5, high: 2 * 5, most: 2 * 879, mostOut: 2 * 9, requests: 1},
		`{"thinking": "yes"}`:                                 {in: 200 + 4, out: 2 * 605, low: 2 * 155, high: 2 * 2405, most: 2 * 882, mostOut: 2 * 4105, requests: 1},
		// The toy question of a probe took 70 tokens.
		`{"thinking": "yes", "thoughts": 70}`: {in: 200 + 4, out: 2 * 110, low: 63, high: 2 * 425, most: 2 * 882, mostOut: 2 * 4105, requests: 1},
		// Requests of another kind, and of this kind, half of whose input was cached.
		`{"thinking": "yes", "thoughts": 70, "thought_tokens": 100, "asked": {"other": {"requests": 2, "bytes": 300, "tokens": 100, "answers": 4, "thoughts": 160}}}`: {
			in: 267 + 4, out: 2 * 45, low: 2 * 15, high: 2 * 109, most: 2 * 881, mostOut: 2 * 109, requests: 1},
		`{"thinking": "yes", "thought_tokens": 100, "asked": {"": {"requests": 2, "bytes": 300, "tokens": 100, "answers": 4, "thoughts": 160, "written": 180, "squares": 8100}, "other": {"requests": 9, "bytes": 9, "tokens": 9, "answers": 9, "written": 900}}}`: {
			in: 267 + 4, out: 2 * 45, low: 56, high: 144, most: 2 * 881, mostOut: 2 * 109, requests: 1},
	} {
		if err := host.KeepProfile(t.Context(), model(t, chatmodel.Config{}, host).Address(), "tiny", json.RawMessage(known)); err != nil {
			t.Fatal(err)
		}
		m := model(t, chatmodel.Config{}, host)
		r := m.Request(0, 9)
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: prompt}}
		f, err := m.Forecast(r, 2, 8, func(profile.Profile) int { return 5 })
		if err != nil || len(host.Calls()) > 0 {
			t.Fatalf("error %v, calls %+v", err, host.Calls())
		}
		must.Equal(t, known, []any{want.in, want.out, want.low, want.high, want.requests, true, f.Unknown == ""}, []any{f.Likely.InputTokens, f.Likely.OutputTokens, f.Low, f.High, f.Requests, strings.HasPrefix(f.Unknown, want.unknown), want.unknown == ""})
		if f.Unknown == "" && (f.Most.InputTokens != want.most || f.Most.OutputTokens != want.mostOut || f.MostRequests != 2) {
			t.Errorf("%s: at most %+v", known, f)
		}
	}
}

// TestKeysOutliveProfiles: a model's profile does not affect the key of an answer.
func TestKeysOutliveProfiles(t *testing.T) {
	server := serve(t, "reasons-like-openai", "refuses-schema", "streams-only")
	m := model(t, chatmodel.Config{BaseURL: server.URL}, &apitest.Host{})
	before := m.Key(everything(m))
	if _, err := ask(t, m, everything(m)); err != nil {
		t.Fatal(err)
	}
	sent, err := m.Applied(t.Context(), everything(m))
	if err != nil || sent.Temperature != nil || !sent.Stream || sent.Form == dialect.FormSchema {
		t.Errorf("sent %+v, error %v", sent, err)
	}
	if m.Key(everything(m)) != before {
		t.Error("an answer that was paid for is lost")
	}
}

// TestStreamsUnasked: a server that always streams is asked for a stream from then on, since only a requested stream
// reports tokens. If a stream breaks off, the engine asks again, and nothing of it counts.
func TestStreamsUnasked(t *testing.T) {
	o := modelserver.Options{Streams: true, Answer: func(modelserver.Ask, int) string { return "yes" }}
	o.Faults = []modelserver.Fault{{Kind: modelserver.Broken, Calls: []int{1}}}
	server, host := modelserver.Serve(t, o), &apitest.Host{}
	m := model(t, chatmodel.Config{BaseURL: server.URL}, host)
	if text, err := ask(t, m, m.Request(0, 9)); err != nil || text != "yes" {
		t.Errorf("%q, error %v", text, err)
	}
	if text, err := ask(t, m, m.Request(0, 9)); sdk.CodeOf(err) != sdk.CodeTransient || text != "" {
		t.Errorf("broken off: %q, error %v", text, err)
	}
	if text, err := ask(t, m, m.Request(0, 9)); err != nil || text != "yes" {
		t.Errorf("%q, error %v", text, err)
	}
	results := host.Results(t)
	if len(results) != 3 || results[0].Usage.InputTokens != 0 || !results[1].Lost || results[2].Usage.InputTokens == 0 {
		t.Errorf("results %+v", results)
	}
}

// TestRoomThatTheModelLacks: if a server cannot give that many tokens, fewer are requested, even if its error is
// about the length of the prompt.
func TestRoomThatTheModelLacks(t *testing.T) {
	var mu sync.Mutex
	var limits []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			MaxTokens int `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		mu.Lock()
		limits = append(limits, sent.MaxTokens)
		mu.Unlock()
		switch {
		case sent.MaxTokens > 2000:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error": {"message": "'max_tokens' is too large: %d. This model's maximum context length is 2048 tokens and your request has 48 input tokens."}}`, sent.MaxTokens)
		case sent.MaxTokens < 100:
			fmt.Fprint(w, `{"choices": [{"message": {"content": "", "reasoning_content": "hm"}, "finish_reason": "length"}]}`)
		default:
			fmt.Fprint(w, `{"choices": [{"message": {"content": "yes", "reasoning_content": "hm"}, "finish_reason": "stop"}]}`)
		}
	}))
	defer server.Close()
	m := model(t, chatmodel.Config{BaseURL: server.URL}, &apitest.Host{})
	if text, err := ask(t, m, m.Request(0, 9)); err != nil || text != "yes" {
		t.Errorf("%q, error %v", text, err)
	}
	if want := []int{9, 4105, 2057, 1033}; !slices.Equal(limits, want) {
		t.Errorf("limits %v, want %v", limits, want)
	}
}
