package chatmodel_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/api/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// serve starts a server that answers with an object, and does what the behaviours say.
func serve(t *testing.T, behaviours ...string) *modelserver.Server {
	o := modelserver.Named(behaviours...)
	o.Answer = func(modelserver.Ask, int) string { return `{"label": "a"}` }
	return modelserver.Serve(t, o)
}

// everything is a request with every field that a model may refuse.
func everything(m *chatmodel.Model) dialect.Request {
	r, half, seven := m.Request(0, 32), .5, 7
	r.Temperature, r.TopP, r.Seed, r.Stop, r.Logprobs = &half, &half, &seven, []string{"\n"}, true
	r.Schema = json.RawMessage(`{"type":"object","properties":{"label":{"type":"string","enum":["a","b"]}},"required":["label"],"additionalProperties":false}`)
	return r
}

// TestWhatModelsTake asks servers that refuse a field, or a form of structured answers, or
// that think or stream: the question is answered all the same, what was found out is reported
// once and kept, and the next run asks once.
func TestWhatModelsTake(t *testing.T) {
	const object = `"type":"json_object"`
	tests := []struct {
		behaviours string
		calls      int    // of the first question
		without    string // in the last request
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

// TestManyAtOnce: requests that are refused together are all asked again.
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

// TestFormsRefusedWithoutAWord: a server that refuses a request without saying why is asked
// in the next form; where it takes none, the error is its first one. One that has obeyed a
// form refuses for another reason.
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

// TestRoomForThoughts: the limit of an answer is raised where thoughts take all of it; the usage
// of the reply is that of all calls.
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

// TestForecast: a forecast goes by what is known of the model, and asks nobody.
func TestForecast(t *testing.T) {
	host := &apitest.Host{}
	prompt := strings.Repeat("A text. ", 100)
	for known, want := range map[string]struct {
		in, most, out, mostOut uint64
		requests               int
		unknown                string
	}{
		`{}`: {in: 200 + 4, out: 2 * 5, requests: 1, unknown: "it is not known whether the model thinks"},
		`{"thinking": "no", "n": "no", "bytes_per_token": 8}`: {in: 2 * (100 + 4), out: 2 * 5, most: 2 * 879, mostOut: 2 * 9, requests: 2},
		`{"thinking": "no", "template_tokens": 30}`:           {in: 200 + 30, out: 2 * 5, most: 2 * (800 + 30 + 16), mostOut: 2 * 9, requests: 1},
		`{"thinking": "yes", "thoughts": 70}`:                 {in: 200 + 4, out: 2 * 75, most: 2 * 882, mostOut: 2 * 4105, requests: 1},
		`{"thinking": "yes", "thoughts": 70, "thought_tokens": 100, "seen": {"requests": 2, "bytes": 300, "tokens": 100, "answers": 4, "thoughts": 160}}`: {
			in: 267 + 4, out: 2 * 45, most: 2 * 881, mostOut: 2 * 109, requests: 1},
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
		if f.Likely.InputTokens != want.in || f.Likely.OutputTokens != want.out || f.Requests != want.requests || !strings.HasPrefix(f.Unknown, want.unknown) || (want.unknown == "") != (f.Unknown == "") {
			t.Errorf("%s: %+v", known, f)
		}
		if f.Unknown == "" && (f.Most.InputTokens != want.most || f.Most.OutputTokens != want.mostOut || f.MostRequests != 2) {
			t.Errorf("%s: at most %+v", known, f)
		}
	}
}

// TestKeysOutliveProfiles: what is found out about a model changes the key of no answer.
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

// TestStreamsUnasked: a server that streams whatever it is asked is asked for a stream from
// then on, since only that reports tokens. One that breaks off is asked again by the engine, and
// nothing of it counts.
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

// TestRoomThatTheModelLacks: a server that cannot give so many tokens is asked for fewer,
// even where it says so as if the prompt were too long.
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
