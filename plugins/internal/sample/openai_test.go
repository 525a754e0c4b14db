package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestForecast compares the forecast for an item with what the server then counts, including a JSON schema.
func TestForecast(t *testing.T) {
	labels := make([]string, 60)
	for i := range labels {
		labels[i] = fmt.Sprintf("a label with the number %d", i)
	}
	prompt := sdk.Prompt{Text: strings.Repeat("An example of a text that has a label. ", 40), Labels: labels}
	chat := sdk.Prompt{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: "Which label?"}}, Labels: labels, Fields: []string{sdk.LabelProperty}}
	const unknown = "it is not known whether the model thinks before it answers, which would take more; racflow model probe finds out, or thinking in the profile block of its config says it"
	tests := map[string]struct {
		samples   int
		arguments string
		prompts   []sdk.Prompt
		server    modelserver.Options
		requests  int
		out       uint64
		unknown   string
	}{
		"one request":             {6, ``, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 6 * 8, ""},
		"several":                 {6, `, "max_n": 4`, []sdk.Prompt{prompt}, modelserver.Options{}, 2, 6 * 8, ""},
		"a prompt for each":       {2, ``, []sdk.Prompt{prompt, chat}, modelserver.Options{}, 2, 8 + 12, ""},
		"a schema":                {2, ``, []sdk.Prompt{chat}, modelserver.Options{}, 1, 2 * 12, ""},
		"a schema, by force":      {2, `, "structured": "json_schema", "max_tokens": 9`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 18, ""},
		"no limit":                {1, `, "max_tokens": -1`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, "its answers have no limit; max_tokens in its config sets one"},
		"a limit in body":         {1, `, "body": "{\"max_tokens\": 5000}"`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, "body in its config may let a request take more"},
		"far too large":           {1, `, "max_tokens": 9000000000`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, "its max_tokens is beyond what any answer has"},
		"a server that gives one": {3, `, "model": "gives-one"`, []sdk.Prompt{prompt}, modelserver.Options{IgnoreN: true}, 3, 3 * 8, ""},
		"a model that thinks":     {2, `, "model": "thinks"`, []sdk.Prompt{prompt}, modelserver.Options{Thinks: modelserver.InAField}, 1, 319, ""}, // 8 for the label, and one and a half times the thoughts that the probe saw
		"a model nobody knows":    {1, `, "model": "unknown"`, []sdk.Prompt{prompt}, modelserver.Options{}, 1, 8, unknown},
		"no prompt":               {1, ``, nil, modelserver.Options{}, 0, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := openedOpenAI(t, test.samples, test.server, test.arguments)
			for model, known := range map[string]string{"tiny": `{"thinking": "no"}`, "gives-one": `{"thinking": "no", "n": "no"}`, "thinks": `{"thinking": "yes", "thoughts": 101}`} {
				must.Do(t, f.host.KeepProfile(t.Context(), f.Address(), model, json.RawMessage(known)))
			}
			item := sdk.Item{Prompts: test.prompts}
			said, err := f.Forecast(item)
			if err != nil || f.server.Calls() > 0 || len(f.host.Calls()) > 0 {
				t.Fatalf("error %v, %d calls", err, f.server.Calls())
			}
			if _, err := f.one(t, item); err != nil {
				t.Fatal(err)
			}
			took := f.host.Spent(t)
			if said.Requests != test.requests || f.server.Calls() != test.requests || said.Likely.OutputTokens != test.out || said.Unknown != test.unknown {
				t.Errorf("%+v, want %d requests, %d tokens out, unknown %q; %d calls", said, test.requests, test.out, test.unknown, f.server.Calls())
			}
			if in := said.Likely.InputTokens; in < took.InputTokens || in > 2*took.InputTokens+50*uint64(test.requests) {
				t.Errorf("%d tokens in were likely, and it took %d", in, took.InputTokens)
			}
			if test.unknown == "" && (said.Most.InputTokens < took.InputTokens || said.Most.OutputTokens < took.OutputTokens) {
				t.Errorf("at most %+v, and it took %+v", said.Most, took)
			}
			for _, call := range f.host.Calls() {
				if (call.Most != sdk.Usage{} && call.Most.Plausible()) != (test.unknown == "" || test.unknown == unknown) {
					t.Errorf("asked for %+v", call)
				}
			}
			if test.prompts == nil {
				return
			}
			again, err := f.Forecast(item) // the response cache has all of it
			if err != nil || again != (sdk.Forecast{Cached: test.samples}) {
				t.Errorf("%+v is said of what is cached, error %v", again, err)
			}
		})
	}
	f := openedOpenAI(t, 1, modelserver.Options{}, `, "endpoint": "completions"`)
	if _, err := f.Forecast(sdk.Item{Prompts: []sdk.Prompt{chat}}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a chat for the completions endpoint: %v", err)
	}
}

const key = "sk-0123456789abcdef"

// fixture is a voter with its server and its engine.
type fixture struct {
	*openAIVoter
	server *modelserver.Server
	host   *apitest.Host
	log    *strings.Builder
	form   sdk.LabelForm
}

// openedOpenAI starts a server and opens the stage on it.
func openedOpenAI(t *testing.T, samples int, o modelserver.Options, arguments string) fixture {
	t.Helper()
	f := fixture{server: modelserver.Serve(t, o), host: &apitest.Host{}, log: &strings.Builder{}}
	f.reopen(t, samples, arguments)
	return f
}

// reopen opens the stage again, as the next run would.
func (f *fixture) reopen(t *testing.T, samples int, arguments string) {
	t.Helper()
	config := fmt.Sprintf(`{"base_url": %q, "model": "tiny", "api_key": "%s\n"%s}`, f.server.URL, key, arguments)
	if strings.Contains(arguments, `"model"`) {
		config = strings.Replace(config, `"model": "tiny", `, "", 1)
	}
	setup := sdk.Setup{Samples: samples, Labels: f.form, Host: f.host, Log: slog.New(slog.NewTextHandler(f.log, nil))}
	stage, err := OpenAI().Open(t.Context(), setup, []byte(config))
	must.Do(t, err)
	f.openAIVoter = stage.(*openAIVoter)
	t.Cleanup(func() { _ = stage.(*openAIVoter).Close() })
}

// one votes on one item.
func (f *fixture) one(t *testing.T, item sdk.Item) ([]sdk.Sample, error) {
	t.Helper()
	samples, err := f.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		return nil, rows[0]
	}
	must.Do(t, err)
	return samples[0], nil
}

func texts(prompts ...string) sdk.Item {
	var item sdk.Item
	for _, p := range prompts {
		item.Prompts = append(item.Prompts, sdk.Prompt{Text: p})
	}
	return item
}

// numbered answers the choices of a question with letters, in order.
func numbered() func(modelserver.Ask, int) string {
	var mu sync.Mutex
	given := map[string]int{}
	return func(a modelserver.Ask, _ int) string {
		mu.Lock()
		defer mu.Unlock()
		given[a.Text()]++
		return string(rune('a' + given[a.Text()] - 1))
	}
}

// labels lists the answer of each sample: its label, or its reason in brackets.
func labels(samples []sdk.Sample) []string {
	var all []string
	for _, s := range samples {
		a := s.Answers[0]
		if a.Reason != "" {
			a.Label = "(" + a.Reason + ")"
		}
		all = append(all, a.Label)
	}
	return all
}

// asked returns n of each request.
func asked(s *modelserver.Server) []int {
	var all []int
	for _, a := range s.Asks() {
		all = append(all, a.N)
	}
	return all
}

func TestRequest(t *testing.T) {
	type body = map[string]any
	user := []any{body{"role": "user", "content": "p"}}
	chat := []sdk.Message{{Role: sdk.MessageSystem, Text: "s"}, {Role: sdk.MessageUser, Text: ""}, {Role: sdk.MessageAssistant, Text: "x"}, {Role: sdk.MessageUser, Text: "p"}}
	tests := []struct {
		name, arguments string
		prompt          sdk.Prompt
		want            body
	}{
		{"chat", "", sdk.Prompt{Text: "p"},
			body{"model": "tiny", "messages": user, "n": 2., "temperature": .7, "max_tokens": 32.}},
		{"completions", `, "endpoint": "completions"`, sdk.Prompt{Text: "p"},
			body{"model": "tiny", "prompt": "p", "n": 2., "temperature": .7, "max_tokens": 32., "stop": []any{"\n"}}},
		{"a chat, an empty turn in it", "", sdk.Prompt{Messages: chat},
			body{"model": "tiny", "n": 2., "temperature": .7, "max_tokens": 32., "messages": []any{
				body{"role": "system", "content": "s"}, body{"role": "user", "content": ""}, body{"role": "assistant", "content": "x"}, body{"role": "user", "content": "p"},
			}}},
		{"a chat with an end", `, "stop": ["\n", "."]`, sdk.Prompt{Text: "p"},
			body{"model": "tiny", "messages": user, "n": 2., "temperature": .7, "max_tokens": 32., "stop": []any{"\n", "."}}},
		{"zeros are sent", `, "temperature": 0, "seed": 0, "stop": [], "max_tokens": -1`, sdk.Prompt{Text: "p"},
			body{"model": "tiny", "messages": user, "n": 2., "temperature": 0., "seed": 0.}},
		{"zeros are sent to completions", `, "temperature": 0, "seed": 0, "stop": [], "max_tokens": -1, "endpoint": "completions"`, sdk.Prompt{Text: "p"},
			body{"model": "tiny", "prompt": "p", "n": 2., "temperature": 0., "seed": 0.}},
		{"the rest", `, "top_p": 0.5, "max_tokens": 7, "max_tokens_field": "max_completion_tokens", "prompt_cache_key": "k", "body": "{\"user\": \"me\", \"temperature\": 1.5}"`, sdk.Prompt{Text: "p"},
			body{"model": "tiny", "messages": user, "n": 2., "temperature": 1.5, "top_p": .5, "max_completion_tokens": 7., "prompt_cache_key": "k", "user": "me"}},
		{"choice", `, "structured": "choice"`, sdk.Prompt{Text: "p", Labels: []string{"a", "b"}, None: "none"},
			body{"model": "tiny", "messages": user, "n": 2., "temperature": .7, "max_tokens": 32., "structured_outputs": body{"choice": []any{"a", "b", "none"}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := openedOpenAI(t, 2, modelserver.Options{Key: key}, test.arguments)
			samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{test.prompt}})
			must.Do(t, err)
			ask := f.server.Asks()[0]
			var got body
			must.Do(t, json.Unmarshal(ask.Body, &got))
			delete(got, "stream") // false
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("asked at %s (-want +got):\n%s", ask.Path, diff)
			}
			path := "/v1/chat/completions"
			if test.want["prompt"] != nil {
				path = "/v1/completions"
			}
			if ask.Path != path {
				t.Errorf("path %s, want %s", ask.Path, path)
			}
			if len(samples) != 2 || samples[0].Usage.InputTokens == 0 || samples[1].Usage != (sdk.Usage{}) || samples[0].Answers[0].Weight != 1 {
				t.Errorf("samples %+v: the tokens belong to the first", samples)
			}
			spent := samples[0].Usage
			if f.host.Spent(t) != spent {
				t.Errorf("results %+v, spent %+v", f.host.Spent(t), spent)
			}
		})
	}
}

func TestSchema(t *testing.T) {
	prompt := sdk.Prompt{Text: "p", Labels: []string{"b \"x\"", "a"}, None: "none", Fields: []string{"reasoning", "label"}}
	want := `{"type":"object","properties":{"reasoning":{"type":"string"},"label":{"type":"string","enum":["b \"x\"","a","none"]}},"required":["reasoning","label"],"additionalProperties":false}`
	for _, endpoint := range []string{"chat", "completions"} {
		f := openedOpenAI(t, 1, modelserver.Options{}, fmt.Sprintf(`, "endpoint": %q`, endpoint))
		samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{prompt}})
		if err != nil || !slices.Equal(labels(samples), []string{`b "x"`}) {
			t.Fatalf("samples %+v, error %v", samples, err)
		}
		body := string(f.server.Asks()[0].Body)
		var sent struct {
			ResponseFormat struct {
				Type       string
				JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
			} `json:"response_format"`
		}
		must.Do(t, json.Unmarshal([]byte(body), &sent))
		if got := string(sent.ResponseFormat.JSONSchema.Schema); got != want || sent.ResponseFormat.Type != "json_schema" {
			t.Errorf("%s: schema %s\nwant %s", endpoint, got, want)
		}
		if strings.Contains(body, `"stop"`) || !strings.Contains(body, `"max_tokens":512`) {
			t.Errorf("%s: %s", endpoint, body)
		}
	}
}

// TestAListOfLabels: each label of the list is an answer of one sample.
func TestAListOfLabels(t *testing.T) {
	prompt := sdk.Prompt{Text: "p", Labels: []string{"b", "a"}, Fields: []string{"reasoning", "labels"}}
	for endpoint, want := range map[string]string{
		"chat":        `"labels":{"type":"array","items":{"type":"string","enum":["b","a"]}}`,
		"completions": `root ::= \"{\\\"reasoning\\\": \" string \", \\\"labels\\\": \" \"[\" (label (\", \" label)*)? \"]\" \"}\"`,
	} {
		text := `{"reasoning": "so", "labels": ["a", "b"]}`
		f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return text }}, fmt.Sprintf(`, "endpoint": %q, "logprobs": true`, endpoint))
		samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{prompt}})
		if diff := cmp.Diff([]sdk.Answer{{Label: "a", Weight: 1}, {Label: "b", Weight: .5}}, samples[0].Answers); err != nil || diff != "" {
			t.Errorf("%s: error %v, (-want +got):\n%s", endpoint, err, diff)
		}
		if ask := f.server.Asks()[0]; !strings.Contains(string(ask.Body), want) || !slices.Equal(ask.Labels, []string{"b", "a"}) {
			t.Errorf("%s: asked %s\nwant %s in it", endpoint, ask.Body, want)
		}
		text = `{"reasoning": "so", "labels": []}`
		f.reopen(t, 1, fmt.Sprintf(`, "endpoint": %q, "temperature": 0.1`, endpoint))
		samples, err = f.one(t, sdk.Item{Prompts: []sdk.Prompt{prompt}})
		if err != nil || !slices.Equal(samples[0].Answers, []sdk.Answer{{Weight: 1}}) {
			t.Errorf("%s: an empty list gives %+v, error %v", endpoint, samples, err)
		}
		text = `{"reasoning": "so", "labels": ["a", `
		f.reopen(t, 1, fmt.Sprintf(`, "endpoint": %q, "temperature": 0.2`, endpoint))
		samples, err = f.one(t, sdk.Item{Prompts: []sdk.Prompt{prompt}})
		if err != nil || len(samples[0].Answers) != 1 || samples[0].Answers[0].Reason == "" {
			t.Errorf("%s: a truncated list gives %+v, error %v", endpoint, samples, err)
		}
	}
}

func TestHeldToLabels(t *testing.T) {
	many := func(n, length int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("%0*d", length, i))
		}
		return all
	}
	fields := []string{"label"}
	tests := []struct {
		name, structured string
		prompt           sdk.Prompt
		allowed          int // of the request
		json             bool
	}{
		{"auto, JSON", "auto", sdk.Prompt{Labels: many(3, 4), Fields: fields}, 3, true},
		{"auto, text", "auto", sdk.Prompt{Labels: many(3, 4)}, 0, false},
		{"any answer", "auto", sdk.Prompt{Fields: fields}, 0, true},
		{"none alone is no list", "auto", sdk.Prompt{Fields: fields, None: "none"}, 0, true},
		{"a schema for a text", "json_schema", sdk.Prompt{Labels: many(3, 4), None: "none"}, 4, true},
		{"off", "off", sdk.Prompt{Labels: many(3, 4), Fields: fields}, 0, false},
		{"as many as there may be", "auto", sdk.Prompt{Labels: many(1000, 4), Fields: fields}, 1000, true},
		{"too many", "auto", sdk.Prompt{Labels: many(1000, 4), None: "none", Fields: fields}, 0, true},
		{"few and long", "auto", sdk.Prompt{Labels: many(250, 100), Fields: fields}, 250, true},
		{"many and long", "auto", sdk.Prompt{Labels: many(251, 60), Fields: fields}, 0, true},
		{"choice has no limit", "choice", sdk.Prompt{Labels: many(2000, 4)}, 2000, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return `{"label": "0001"}` }}, fmt.Sprintf(`, "structured": %q`, test.structured))
			test.prompt.Text = "p"
			for range 2 {
				if _, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{test.prompt}}); err != nil {
					t.Fatal(err)
				}
			}
			ask := f.server.Asks()[0]
			if len(ask.Labels) != test.allowed || (ask.Fields != nil) != test.json {
				t.Errorf("allowed %d labels, fields %v", len(ask.Labels), ask.Fields)
			}
			said := strings.Count(f.log.String(), "too many")
			if want := len(test.prompt.Labels) > 250 && test.allowed == 0; said > 1 || (said == 1) != want {
				t.Errorf("said %d times:\n%s", said, f.log)
			}
		})
	}
	f := openedOpenAI(t, 1, modelserver.Options{}, `, "structured": "choice"`)
	if _, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{{Text: "p", Fields: fields}}}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("error %v: JSON that is one of the labels", err)
	}
}

// TestAServerWithoutSchemas: it is asked in the next form that it accepts, and about the next item in that form at
// once. The schema is then part of the prompt.
func TestAServerWithoutSchemas(t *testing.T) {
	f := openedOpenAI(t, 1, modelserver.Options{Refuse: func(a modelserver.Ask) bool { return strings.Contains(string(a.Body), "json_schema") }}, "")
	for calls := 2; calls < 4; calls++ {
		samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{{Text: fmt.Sprint(calls), Labels: []string{"answer", "b"}, Fields: []string{"label"}}}})
		if err != nil || !slices.Equal(labels(samples), []string{"answer"}) || f.server.Calls() != calls {
			t.Errorf("%v after %d calls, error %v", labels(samples), f.server.Calls(), err)
		}
	}
	if body := string(f.server.Asks()[2].Body); !strings.Contains(body, `"enum\":[\"answer\",\"b\"]`) || !strings.Contains(body, `"json_object"`) {
		t.Errorf("asked %s", body)
	}
	if strings.Count(f.log.String(), "level=WARN") != 1 {
		t.Errorf("said:\n%s", f.log)
	}
}

func TestCountsOfChoices(t *testing.T) {
	nameless := modelserver.Fault{Kind: modelserver.Status, Status: 400, If: func(a modelserver.Ask) bool { return a.N > 4 }}
	tests := []struct {
		name      string
		samples   int
		options   modelserver.Options
		arguments string
		asked     []int
		say       string
	}{
		{"as asked", 5, modelserver.Options{}, "", []int{5}, ""},
		{"n is ignored", 5, modelserver.Options{IgnoreN: true}, "", []int{5, 4, 3, 2, 1}, "fewer choices than"},
		{"only one is given", 3, modelserver.Options{MaxN: 1}, "", []int{3, 2, 1, 1, 1}, "refuses n"},
		{"a few are given", 7, modelserver.Options{MaxN: 4}, "", []int{7, 4, 3}, "refuses n"},
		{"a few are given, and nothing is said", 7, modelserver.Options{Faults: []modelserver.Fault{nameless}}, "", []int{7, 3, 3, 1}, "refuses n"},
		{"fewer once", 5, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Fewer, Calls: []int{0}}}}, "", []int{5, 1}, "fewer choices than"},
		{"more than asked for", 2, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.More, Share: 1}}}, "", []int{2}, ""},
		{"max_n", 5, modelserver.Options{}, `, "max_n": 2`, []int{2, 2, 1}, ""},
		{"n of 0 asks once", 0, modelserver.Options{}, "", []int{1}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.options.Answer = numbered()
			f := openedOpenAI(t, test.samples, test.options, test.arguments)
			samples, err := f.one(t, texts("p"))
			must.Do(t, err)
			got := labels(samples)
			slices.Sort(got) // parallel requests may overtake each other
			if want := strings.Split("abcdefgh", "")[:max(1, test.samples)]; !slices.Equal(got, want) {
				t.Errorf("answers %v, want %v", got, want)
			}
			n := asked(f.server)
			if len(n) == len(test.asked) && test.arguments != "" {
				slices.Sort(n)
				slices.Sort(test.asked)
			}
			if !slices.Equal(n, test.asked) {
				t.Errorf("n of the requests %v, want %v", n, test.asked)
			}
			if said := strings.Count(f.log.String(), "level=WARN"); (said == 1) != (test.say != "") || !strings.Contains(f.log.String(), test.say) {
				t.Errorf("said, want %q once:\n%s", test.say, f.log)
			}
		})
	}
}

// TestModelsThatThink: a model of any name that accepts hardly any field gets the same question. What it accepts is
// found out once.
func TestModelsThatThink(t *testing.T) {
	o := modelserver.Named("reasons-like-openai")
	o.Answer = numbered()
	f := openedOpenAI(t, 3, o, `, "model": "any", "max_tokens": 900, "logprobs": true, "seed": 5`)
	for _, item := range []sdk.Item{texts("p"), texts("q")} {
		samples, err := f.one(t, item)
		got := labels(samples)
		slices.Sort(got) // parallel requests may overtake each other
		if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("answers %v, error %v", got, err)
		}
	}
	asks := f.server.Asks()
	for _, a := range asks[len(asks)-3:] {
		if body := string(a.Body); !strings.Contains(body, `"max_completion_tokens":4996`) || !strings.Contains(body, `"seed":`) || a.N != 1 || strings.Contains(body, "temperature") || strings.Contains(body, "stop") || strings.Contains(body, "logprobs") {
			t.Errorf("asked %s", body)
		}
	}
	if refused := len(asks) - 6; refused > 6 {
		t.Errorf("%d requests were refused", refused)
	}
}

// TestSingleAnswersAtOnce: if a model gives one answer per request, the first is requested alone, and then all others
// at once.
func TestSingleAnswersAtOnce(t *testing.T) {
	var together sync.WaitGroup // the second and the third are answered at the same time
	together.Add(2)
	f := openedOpenAI(t, 3, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if a.Number > 0 {
			together.Done()
			together.Wait()
		}
		return "a"
	}}, "")
	must.Do(t, f.host.KeepProfile(t.Context(), f.server.URL, "tiny", json.RawMessage(`{"n": "no"}`)))
	if _, err := f.one(t, texts("p")); err != nil || !slices.Equal(asked(f.server), []int{1, 1, 1}) {
		t.Errorf("n of the requests %v, error %v", asked(f.server), err)
	}
}

// TestPassages: an answer that cites passages is a free text.
func TestPassages(t *testing.T) {
	answer := "A lost card is blocked at once [1].\n\nA new one comes within a week [1]."
	item := sdk.Item{Prompts: []sdk.Prompt{{Passages: []string{"guide"}, None: "Nothing.", Messages: []sdk.Message{
		{Role: sdk.MessageSystem, Text: "s", Shared: true}, {Role: sdk.MessageUser, Text: "p", Shared: true}, {Role: sdk.MessageUser, Text: "q"},
	}}}}
	for name, arguments := range map[string]string{
		"plainly": "", "with all that is for labels": `, "structured": "choice", "logprobs": true, "stop": ["."]`, "marked": `, "cache_control": true`,
	} {
		f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return answer }}, arguments)
		samples, err := f.one(t, item)
		if err != nil || samples[0].Answers[0] != (sdk.Answer{Label: answer, Weight: 1}) {
			t.Fatalf("%s: samples %+v, error %v", name, samples, err)
		}
		ask := f.server.Asks()[0]
		var got map[string]any
		must.Do(t, json.Unmarshal(ask.Body, &got))
		delete(got, "stream") // false
		if want := []string{"max_tokens", "messages", "model", "n", "temperature"}; !slices.Equal(slices.Sorted(maps.Keys(got)), want) || got["max_tokens"] != 1024. {
			t.Errorf("%s: asked %s", name, ask.Body)
		}
		for i, m := range ask.Messages {
			if m.Marked != (name == "marked" && i < 2) {
				t.Errorf("%s: message %d is marked: %t", name, i, m.Marked)
			}
		}
	}
	f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return answer }}, `, "max_tokens": 10`)
	if samples, err := f.one(t, item); err != nil || !slices.Equal(labels(samples), []string{"(the answer was cut off; raise max_tokens)"}) {
		t.Errorf("cut off: samples %+v, error %v", samples, err)
	}
}

// TestABadPromptIsNotNsError: n is not the reason if n = 1 fails, too.
func TestABadPromptIsNotNsError(t *testing.T) {
	f := openedOpenAI(t, 3, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 400, Calls: []int{0, 1}}}}, "")
	if _, err := f.one(t, texts("too long")); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("error %v", err)
	}
	if _, err := f.one(t, texts("p")); err != nil {
		t.Error(err)
	}
	if got := asked(f.server); !slices.Equal(got, []int{3, 1, 3}) {
		t.Errorf("n of the requests %v", got)
	}
}

// A prompt that is too long for the model is not sent again with a smaller n, and the advice is about its length.
func TestATooLongPrompt(t *testing.T) {
	for name, message := range map[string]string{
		"openai":    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
		"llama.cpp": "the request exceeds the available context size, try increasing it",
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					calls++
				}
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error": {"message": %q}}`, message)
			}))
			t.Cleanup(server.Close)
			f := fixture{server: &modelserver.Server{URL: server.URL}, host: &apitest.Host{}, log: &strings.Builder{}}
			f.reopen(t, 6, "")
			_, err := f.one(t, texts("p"))
			if err == nil || !strings.Contains(err.Error(), "max_tokens in the config of the prompt") || calls != 1 {
				t.Errorf("%d calls, error %v", calls, err)
			}
		})
	}
}

func TestPromptsTakeTurns(t *testing.T) {
	f := openedOpenAI(t, 5, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string { return a.Text() }}, "")
	samples, err := f.one(t, texts("p", "q"))
	if err != nil || !slices.Equal(labels(samples), []string{"p", "q", "p", "q", "p"}) {
		t.Errorf("answers %v, error %v", labels(samples), err)
	}
	item := texts("p", "q")
	item.Drawn = 5
	if samples, err = f.one(t, item); err != nil || !slices.Equal(labels(samples), []string{"q", "p", "q", "p", "q"}) {
		t.Errorf("from number 5 on: answers %v, error %v", labels(samples), err)
	}
	if samples, err := f.one(t, sdk.Item{}); err != nil || len(samples) != 0 {
		t.Errorf("without a prompt: %v, error %v", samples, err)
	}
	f = openedOpenAI(t, 1, modelserver.Options{}, `, "endpoint": "completions"`)
	chat := sdk.Item{Prompts: []sdk.Prompt{{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: "p"}}}}}
	if _, err := f.one(t, chat); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), `endpoint = "chat"`) {
		t.Errorf("a chat for completions: %v", err)
	}
}

func TestSeeds(t *testing.T) {
	f := openedOpenAI(t, 3, modelserver.Options{IgnoreN: true}, `, "seed": 7`)
	item := texts("p")
	item.Drawn = 10
	if _, err := f.one(t, item); err != nil {
		t.Fatal(err)
	}
	for i, a := range f.server.Asks() {
		if want := fmt.Sprintf(`"seed":%d`, 17+i); !strings.Contains(string(a.Body), want) {
			t.Errorf("request %d: %s, want %s", i, a.Body, want)
		}
	}
}

func TestOpenAIArguments(t *testing.T) {
	tests := []struct{ config, argument string }{
		{`{}`, "model"},
		{`{"model": ""}`, "model"},
		{`{"model": "m", "base_url": "localhost:8080"}`, "base_url"},
		{`{"model": "m", "api_key": "` + key + `\nx"}`, "api_key"},
		{`{"model": "m", "headers": {"X": "` + key + `\n"}}`, "headers"},
		{`{"model": "m", "body": "{\"messages\": []}"}`, "body"},
		{`{"model": "m", "endpoint": "responses"}`, "endpoint"},
		{`{"model": "m", "temperature": -1}`, "temperature"},
		{`{"model": "m", "top_p": 0}`, "top_p"},
		{`{"model": "m", "seed": -2}`, "seed"},
		{`{"model": "m", "max_tokens": -2}`, "max_tokens"},
		{`{"model": "m", "max_n": 0}`, "max_n"},
		{`{"model": "m", "stop": [""]}`, "stop"},
		{`{"model": "m", "nearest": 1.5}`, "nearest"},
		{`{"model": "m", "structured": "grammar"}`, "structured"},
		{`{"model": "m", "timeout": "0s"}`, "timeout"},
	}
	for _, test := range tests {
		_, err := OpenAI().Open(t.Context(), sdk.Setup{}, []byte(test.config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != test.argument {
			t.Errorf("%s: error %v, want one about %s", test.config, err, test.argument)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("the key stands in %q", err)
		}
	}
}

func TestOpenAIConformance(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{})
	sdktest.Stage(t, OpenAI(), fmt.Sprintf(`{"base_url": %q, "model": "tiny"}`, server.URL))
}

// values returns the cached values, sorted.
func values(h *apitest.Host) []string {
	var all []string
	for _, value := range h.Cached() {
		all = append(all, string(value))
	}
	slices.Sort(all)
	return all
}

// openAIKeys returns the keys of the cached values.
func openAIKeys(h *apitest.Host) []sdk.Key { return slices.Collect(maps.Keys(h.Cached())) }
