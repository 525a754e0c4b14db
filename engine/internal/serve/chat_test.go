package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"

	"github.com/racflow/racflow/sdk"
)

// answers returns a pipeline's result for each question.
func answers(_ context.Context, i workspace.Item) (workspace.Result, error) {
	switch i.Text {
	case "busy":
		return workspace.Result{}, live.ErrBusy
	case "broken":
		return workspace.Result{}, errors.New("the store cannot be reached")
	case "":
		return workspace.Result{Error: &result.Failure{Message: "the text is empty"}}, nil
	case "fails":
		return workspace.Result{Error: &result.Failure{Stage: "sample.llm", Message: "it was refused"}}, nil
	case "nothing":
		return workspace.Result{Verdict: result.Verdict{Reason: "no voter has an acceptable answer"}}, nil
	case "passages":
		return workspace.Result{Candidates: []workspace.Candidate{{ID: "a", Text: "first", Meta: sdk.Meta{"path": "docs/a b.md", "first_line": 3.0, "last_line": 9.0}}, {ID: "b", Text: "second"}}}, nil
	case "cites":
		return workspace.Result{
			Answer: "Grüße [2], not [7].", Citations: []result.Citation{{Number: 2, ID: "x", Path: "guide.pdf", Title: "Guide", FirstPage: 4}},
			Usage: sdk.Usage{InputTokens: 10, CachedTokens: 4, OutputTokens: 5},
		}, nil
	}
	return workspace.Result{Answer: result.Answer("about " + i.Text)}, nil
}

func chatStart(t *testing.T) string {
	p := &fakePipeline{Label: "intent", To: answers, State: live.Status{Since: time.Unix(1700000000, 0)}}
	s, err := New(func() []Pipeline { return []Pipeline{p} }, Options{})
	if err != nil {
		t.Fatal(err)
	}
	MountChat(s)
	server := httptest.NewServer(s.guard)
	t.Cleanup(server.Close)
	return server.URL
}

func ask(t *testing.T, method, url, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

func body(question string) string {
	text, _ := json.Marshal(question)
	return `{"model":"intent","messages":[{"role":"user","content":` + string(text) + `}]}`
}

func TestComplete(t *testing.T) {
	url := chatStart(t) + "/v1/chat/completions"
	for _, test := range []struct {
		name, body, in string
		status         int
	}{
		{"label", body("cards"), `"message":{"role":"assistant","content":"about cards"}`, 200},
		{"stops", body("cards"), `"finish_reason":"stop"`, 200},
		{"last user message", `{"model":"intent","messages":[{"role":"user","content":"old"},{"role":"assistant","content":"x"},{"role":"user","content":"new"},{"role":"tool","content":"y"}]}`, `"about new"`, 200},
		{"parts", `{"model":"intent","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`, `"about a\nb"`, 200},
		{"whole result", body("nothing"), `"racflow":{"id":"","text":"","answer":null`, 200},
		{"no answer", body("nothing"), `"message":{"role":"assistant","refusal":"there is no answer: no voter has an acceptable answer"}`, 200},
		{"citation in characters", body("cites"), `"annotations":[{"type":"url_citation","url_citation":{"start_index":6,"end_index":9,"title":"Guide","url":"guide.pdf#page=4"}}]`, 200},
		{"usage", body("cites"), `"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4}}`, 200},
		{"passages", body("passages"), `"content":"[1] first\n\n[2] second","annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":3,"title":"docs/a b.md","url":"docs/a%20b.md#L3-L9"}},{"type":"url_citation","url_citation":{"start_index":11,"end_index":14,"title":"b","url":"b"}}]`, 200},
		{"settings without effect", `{"model":"intent","temperature":0.3,"tools":[{}],"n":1,"response_format":{"type":"text"},"messages":[{"role":"user","content":"a"}]}`, `"about a"`, 200},

		{"no JSON", `{`, `"error":{"message":"the body is not JSON: line 1, column 1: unexpected end`, 400},
		{"no question", `{"model":"intent","messages":[{"role":"system","content":"x"}]}`, `"param":"messages"`, 400},
		{"picture", `{"model":"intent","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, `type \"image_url\"`, 400},
		{"content of another form", `{"model":"intent","messages":[{"role":"user","content":7}]}`, `content is a text or a list of parts`, 400},
		{"two answers", `{"model":"intent","n":2,"messages":[{"role":"user","content":"x"}]}`, `"param":"n"`, 400},
		{"format", `{"model":"intent","response_format":{"type":"json_object"},"messages":[{"role":"user","content":"x"}]}`, `"param":"response_format"`, 400},
		{"unknown", `{"model":"intend","messages":[{"role":"user","content":"x"}]}`, `"code":"model_not_found"`, 404},
		{"empty", body(""), `"message":"the text is empty","type":"invalid_request_error"`, 422},
		{"busy", body("busy"), `"type":"rate_limit_error"`, 429},
		{"failed", body("fails"), `"message":"sample.llm: it was refused","type":"server_error"`, 502},
		{"cannot serve", body("broken"), `the store cannot be reached`, 503},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, header, got := ask(t, http.MethodPost, url, test.body)
			if status != test.status || !strings.Contains(got, test.in) {
				t.Errorf("%d %s\nwanted %d with %s", status, got, test.status, test.in)
			}
			if status == http.StatusTooManyRequests && header.Get("Retry-After") == "" {
				t.Error("it does not say when to try again")
			}
		})
	}
}

func TestStream(t *testing.T) {
	url := chatStart(t) + "/v1/chat/completions"
	streamed := func(question string) string {
		return strings.Replace(body(question), "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)
	}
	status, header, got := ask(t, http.MethodPost, url, streamed("cites"))
	if status != http.StatusOK || header.Get("Content-Type") != "text/event-stream" || header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%d %v", status, header)
	}
	events := strings.Split(strings.TrimSpace(got), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		t.Errorf("it ends with %q", last)
	}
	text, finished, tokens, cited := "", false, uint64(0), 0
	for _, e := range events[:len(events)-1] {
		var c completion
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &c); err != nil {
			t.Fatalf("%q: %v", e, err)
		}
		if c.Object != "chat.completion.chunk" || c.Model != "intent" {
			t.Errorf("%+v", c)
		}
		for _, one := range c.Choices {
			if one.Delta.Content != nil {
				text += *one.Delta.Content
			}
			cited += len(one.Delta.Annotations)
			finished = finished || one.Finish != nil
		}
		if c.Usage != nil {
			tokens = c.Usage.Total
		}
	}
	if text != "Grüße [2], not [7]." || !finished || tokens != 15 || cited != 1 {
		t.Errorf("text %q, finished %v, %d tokens, %d citations", text, finished, tokens, cited)
	}
	if status, _, got := ask(t, http.MethodPost, url, streamed("busy")); status != http.StatusTooManyRequests || !strings.Contains(got, "rate_limit_error") {
		t.Errorf("busy: %d %s", status, got)
	}
	if _, _, got := ask(t, http.MethodPost, url, streamed("nothing")); !strings.Contains(got, `"delta":{"role":"assistant","refusal":"there is no answer`) {
		t.Errorf("without an answer: %s", got)
	}
}

func TestModels(t *testing.T) {
	url := chatStart(t)
	for path, want := range map[string]string{
		"/v1/models":        `{"data":[{"id":"intent","object":"model","created":1700000000,"owned_by":"racflow"}],"object":"list","models":[{"name":"intent","description":"Takes a text through the pipeline intent.","release_date":"2023-11-14"}]}`,
		"/v1/models/intent": `{"id":"intent","object":"model"`,
		"/v1/models/other":  `"code":"model_not_found"`,
	} {
		if _, _, got := ask(t, http.MethodGet, url+path, ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
