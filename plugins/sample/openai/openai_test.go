package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

const key = "sk-0123456789abcdef"

// body is what a server is sent, by either endpoint.
type body struct {
	Model       string
	Prompt      string
	Messages    []struct{ Role, Content string }
	N           int
	Temperature *float64
	MaxTokens   *int `json:"max_tokens"`
	Stop        []string
}

// chatReply is a chat completion with the given texts and some usage.
func chatReply(texts ...string) string {
	choices := []map[string]any{}
	for i, text := range texts {
		choices = append(choices, map[string]any{"index": i, "message": map[string]any{"role": "assistant", "content": text}})
	}
	reply, _ := json.Marshal(map[string]any{"choices": choices, "usage": map[string]int{"prompt_tokens": 100, "completion_tokens": 3}})
	return string(reply)
}

// serve starts a server that answers with handle and opens the stage on it.
func serve(t *testing.T, samples int, arguments string, handle func(w http.ResponseWriter, r *http.Request, b body)) *voter {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b body
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Errorf("request: %v", err)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("authorization %q", got)
		}
		handle(w, r, b)
	}))
	t.Cleanup(server.Close)
	return openAt(t, server.URL+"/v1", samples, arguments)
}

func openAt(t *testing.T, address string, samples int, arguments string) *voter {
	t.Helper()
	config := fmt.Sprintf(`{"base_url": %q, "model": "tiny", "api_key": "%s\n"%s}`, address, key, arguments)
	stage, err := Stage().Open(t.Context(), sdk.Setup{Samples: samples}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	v := stage.(*voter)
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func items(prompts ...string) sdk.Batch {
	var b sdk.Batch
	for _, p := range prompts {
		b.Items = append(b.Items, sdk.Item{Prompts: []sdk.Prompt{{Text: p}}})
	}
	return b
}

// answers lists the answer of each sample, "-" for a sample without one.
func answers(samples []sdk.Sample) []string {
	var all []string
	for _, s := range samples {
		if len(s.Answers) == 0 {
			all = append(all, "-")
			continue
		}
		all = append(all, s.Answers[0].Label)
	}
	return all
}

func TestRequest(t *testing.T) {
	number := func(f float64) *float64 { return &f }
	count := func(n int) *int { return &n }
	message := []struct{ Role, Content string }{{"user", "the prompt"}}
	tests := []struct {
		name, arguments, path string
		want                  body
	}{
		{"chat", "", "/v1/chat/completions",
			body{Model: "tiny", Messages: message, N: 2, Temperature: number(.7), MaxTokens: count(32), Stop: []string{"\n"}}},
		{"completions", `, "endpoint": "completions"`, "/v1/completions",
			body{Model: "tiny", Prompt: "the prompt", N: 2, Temperature: number(.7), MaxTokens: count(32), Stop: []string{"\n"}}},
		{"temperature 0 is sent", `, "temperature": 0, "stop": "", "max_tokens": 0`, "/v1/chat/completions",
			body{Model: "tiny", Messages: message, N: 2, Temperature: number(0)}},
		{"temperature 0 is sent to completions", `, "temperature": 0, "endpoint": "completions"`, "/v1/completions",
			body{Model: "tiny", Prompt: "the prompt", N: 2, Temperature: number(0), MaxTokens: count(32), Stop: []string{"\n"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := serve(t, 2, test.arguments, func(w http.ResponseWriter, r *http.Request, b body) {
				if diff := cmp.Diff(test.want, b); diff != "" || r.URL.Path != test.path {
					t.Errorf("asked at %s (-want +got):\n%s", r.URL.Path, diff)
				}
				if b.Prompt != "" {
					fmt.Fprint(w, `{"choices": [{"text": " a\n"}, {"text": " b"}], "usage": {"prompt_tokens": 100, "completion_tokens": 3}}`)
					return
				}
				fmt.Fprint(w, chatReply("a", "b"))
			})
			samples, err := v.Sample(t.Context(), items("the prompt"))
			if err != nil {
				t.Fatal(err)
			}
			want := [][]sdk.Sample{{
				{Answers: []sdk.Answer{{Label: "a", Weight: 1}}, Usage: sdk.Usage{InputTokens: 100, OutputTokens: 3}},
				{Answers: []sdk.Answer{{Label: "b", Weight: 1}}},
			}}
			if diff := cmp.Diff(want, samples); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerIsTheFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		" book flight ": "book flight", "alarm\nText: x\nLabel: y": "alarm", "\n\n alarm\r\n": "alarm", "": "", " \n ": "",
	} {
		if got := answer(text); got != want {
			t.Errorf("answer(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestNIsIgnored(t *testing.T) {
	var asked []int
	v := serve(t, 5, "", func(w http.ResponseWriter, _ *http.Request, b body) {
		asked = append(asked, b.N)
		fmt.Fprint(w, chatReply([]string{"a", "b", "c", "d", "e"}[len(asked)-1]))
	})
	samples, err := v.Sample(t.Context(), items("p"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, answers(samples[0])); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{5, 4, 3, 2, 1}, asked); diff != "" {
		t.Errorf("n of the requests (-want +got):\n%s", diff)
	}
}

func TestNIsRefused(t *testing.T) {
	var asked []int
	v := serve(t, 3, "", func(w http.ResponseWriter, _ *http.Request, b body) {
		asked = append(asked, b.N)
		if b.N > 1 || b.Messages[0].Content == "too long" {
			http.Error(w, `{"error": {"message": "bad request"}}`, http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, chatReply("a"))
	})
	for _, step := range []struct {
		prompt string
		asked  []int
		failed bool
	}{
		{"too long", []int{3, 1}, true}, // n was not at fault: it is tried again
		{"p", []int{3, 1, 1, 1}, false},
		{"p", []int{1, 1, 1}, false},
	} {
		asked = nil
		samples, err := v.Sample(t.Context(), items(step.prompt))
		if (err != nil) != step.failed || !step.failed && len(samples[0]) != 3 {
			t.Errorf("%s: samples %v, error %v", step.prompt, samples, err)
		}
		if diff := cmp.Diff(step.asked, asked); diff != "" {
			t.Errorf("%s: n of the requests (-want +got):\n%s", step.prompt, diff)
		}
	}
}

func TestSamplesOfAnItem(t *testing.T) {
	tests := []struct {
		name    string
		samples int
		prompts []string
		reply   string
		want    []string
	}{
		{"no prompt", 3, nil, chatReply("a"), nil},
		{"more choices than asked for", 2, []string{"p"}, chatReply("a", "b", "c"), []string{"a", "b"}},
		{"spread over prompts", 5, []string{"p", "q"}, chatReply("a", "b", "c", "d", "e"), []string{"a", "b", "a", "b", "c"}},
		{"n of 0 asks once", 0, []string{"p"}, chatReply("a"), []string{"a"}},
		{"empty text", 2, []string{"p"}, chatReply("", "a"), []string{"-", "a"}},
		{"refusal", 1, []string{"p"}, `{"choices": [{"message": {"role": "assistant", "content": null, "refusal": "I can't help with that."}}]}`, []string{"-"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := serve(t, test.samples, "", func(w http.ResponseWriter, _ *http.Request, _ body) { fmt.Fprint(w, test.reply) })
			var item sdk.Item
			for _, p := range test.prompts {
				item.Prompts = append(item.Prompts, sdk.Prompt{Text: p})
			}
			samples, err := v.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, answers(samples[0])); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnItemFailsAlone(t *testing.T) {
	v := serve(t, 1, "", func(w http.ResponseWriter, _ *http.Request, b body) {
		if b.Messages[0].Content == "bad" {
			http.Error(w, `{"error": {"message": "too long"}}`, http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, chatReply(b.Messages[0].Content))
	})
	samples, err := v.Sample(t.Context(), items("x", "bad", "z"))
	var rows sdk.RowErrors
	if !errors.As(err, &rows) || len(rows) != 1 || sdk.CodeOf(rows[1]) != sdk.CodeInvalid {
		t.Fatalf("error %v, want row 1 to be invalid", err)
	}
	if diff := cmp.Diff([][]string{{"x"}, nil, {"z"}}, [][]string{answers(samples[0]), answers(samples[1]), answers(samples[2])}); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestConcurrency(t *testing.T) {
	var now, most atomic.Int32
	v := serve(t, 1, `, "concurrency": 3`, func(w http.ResponseWriter, _ *http.Request, _ body) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		fmt.Fprint(w, chatReply("a"))
	})
	if _, err := v.Sample(t.Context(), items(strings.Split("abcdefghi", "")...)); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 3 {
		t.Errorf("%d requests at a time, want 3", most.Load())
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	v := serve(t, 1, `, "concurrency": 1`, func(_ http.ResponseWriter, r *http.Request, _ body) {
		cancel()
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	samples, err := v.Sample(ctx, items("a", "b"))
	if !errors.Is(err, context.Canceled) || samples != nil {
		t.Errorf("samples %v, error %v; want the context's error", samples, err)
	}
}

func TestConformance(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, chatReply("weather"))
	}))
	defer server.Close()
	sdktest.Stage(t, Stage(), fmt.Sprintf(`{"base_url": %q, "model": "tiny"}`, server.URL))
}
