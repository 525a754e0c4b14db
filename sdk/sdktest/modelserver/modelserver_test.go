package modelserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// post sends a body and returns the status, the headers and the reply, which is nil if it is no JSON.
func post(t *testing.T, ctx context.Context, s *Server, path, body string) (int, http.Header, map[string]any, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	must.Do(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	var reply map[string]any
	_ = json.Unmarshal(text, &reply)
	return res.StatusCode, res.Header, reply, err
}

const hello = `{"model": "m", "messages": [{"role": "user", "content": "hello"}]}`

func TestRefusals(t *testing.T) {
	s := Serve(t, Options{MaxN: 4})
	schema := func(enum string) string {
		return `{"model": "m", "messages": [{"role": "user", "content": "p"}], "response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": true,
			"schema": {"type": "object", "properties": {"label": {"type": "string", "enum": [` + enum + `]}}, "required": ["label"], "additionalProperties": false}}}}`
	}
	long := strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 100)+`",`, 251), ",")
	for _, test := range []struct {
		path, body string
		status     int
	}{
		{"/chat/completions", hello, 200},
		{"/completions", `{"model": "m", "prompt": "p"}`, 200},
		{"/chat/completions", `{"model": "m", "messages": [{"role": "user", "content": "p"}], "n": 5}`, 400},
		{"/chat/completions", `{"model": "m", "messages": []}`, 400},
		{"/chat/completions", `{`, 400},
		{"/chat/completions", `{"model": "gpt-5", "messages": [{"role": "user", "content": "p"}], "temperature": 0}`, 200},
		{"/chat/completions", schema(`"a", "b"`), 200},
		{"/chat/completions", schema(strings.TrimSuffix(strings.Repeat(`"a",`, 1001), ",")), 400},
		{"/chat/completions", schema(long), 400},
		{"/chat/completions", strings.Replace(schema(`"a"`), `"additionalProperties": false`, `"x": 1`, 1), 400},
		{"/chat/completions", strings.Replace(schema(`"a"`), `"strict": true`, `"strict": false`, 1), 400},
		{"/embeddings", `{"model": "m", "input": ["a"]}`, 200},
		{"/embeddings", `{"model": "m", "input": ["a", ""]}`, 400},
		{"/models", `{}`, 400},
	} {
		status, _, reply, err := post(t, t.Context(), s, test.path, test.body)
		if status != test.status || err != nil || (reply["error"] != nil) != (status == 400) {
			t.Errorf("%s %.120s: status %d, %v, error %v", test.path, test.body, status, reply, err)
		}
	}
}

func TestFaults(t *testing.T) {
	wait := 1500 * time.Millisecond
	faults := []Fault{
		{Kind: Status, Status: 429, Wait: wait, Form: Milliseconds, Calls: []int{0}},
		{Kind: Status, Status: 429, Wait: wait, Form: Seconds, Calls: []int{1}},
		{Kind: Status, Status: 503, Wait: wait, Form: Date, Calls: []int{2}},
		{Kind: HalfBody, Calls: []int{3}},
		{Kind: Broken, Calls: []int{4}},
		{Kind: Drop, Calls: []int{5}},
		{Kind: Page, Calls: []int{6}},
		{Kind: Hang, Calls: []int{7}},
	}
	s := Serve(t, Options{Faults: faults})
	ask := func() (int, http.Header, map[string]any, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if s.Calls() == 7 { // this request hangs
			time.AfterFunc(200*time.Millisecond, cancel)
		}
		return post(t, ctx, s, "/chat/completions", hello)
	}
	if status, h, _, _ := ask(); status != 429 || h.Get("retry-after-ms") != "1500" {
		t.Errorf("status %d, %v", status, h)
	}
	if status, h, _, _ := ask(); status != 429 || h.Get("retry-after") != "1.5" {
		t.Errorf("status %d, %v", status, h)
	}
	if status, h, _, _ := ask(); status != 503 || !strings.HasSuffix(h.Get("retry-after"), "GMT") {
		t.Errorf("status %d, %v", status, h)
	}
	for i, want := range []struct {
		status int
		failed bool
	}{{200, true}, {200, false}, {0, true}, {200, false}, {0, true}} {
		if status, _, reply, err := ask(); status != want.status || (err != nil) != want.failed || reply != nil {
			t.Errorf("request %d: status %d, %v, error %v", i+3, status, reply, err)
		}
	}
	if status, _, reply, err := ask(); status != 200 || err != nil || reply["choices"] == nil {
		t.Errorf("then: status %d, %v, error %v", status, reply, err)
	}
	if given := s.Given(); len(given) != 1 || given["user: hello\n"] != 1 || s.Doubled(1) != 0 {
		t.Errorf("given %v: only the last got its answer", given)
	}
}

func TestCounts(t *testing.T) {
	s := Serve(t, Options{Latency: 20 * time.Millisecond})
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() { _, _, _, _ = post(t, t.Context(), s, "/chat/completions", hello) })
	}
	calls.Wait()
	if s.Calls() != 5 || s.MostAtOnce() < 2 || s.MostAtOnce() > 5 || s.Doubled(2) != 3 {
		t.Errorf("%d calls, %d at once, %d doubled", s.Calls(), s.MostAtOnce(), s.Doubled(2))
	}
	cached := func(prompt string) float64 {
		_, _, reply, err := post(t, t.Context(), s, "/completions", `{"model": "m", "prompt": "`+prompt+`"}`)
		must.Do(t, err)
		return reply["usage"].(map[string]any)["prompt_tokens_details"].(map[string]any)["cached_tokens"].(float64)
	}
	beginning := strings.Repeat("0123456789abcdef", 10) // 160 characters: two blocks
	if a, b, c := cached(beginning+"a"), cached(beginning+"b"), cached("x"+beginning); a != 0 || b != 32 || c != 0 {
		t.Errorf("cached tokens %v, %v, %v", a, b, c)
	}
}

// Probes are answered. Unless a test says otherwise, they do not count and meet no faults.
func TestProbes(t *testing.T) {
	probe := func(s *Server) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/chat/completions", strings.NewReader(hello))
		must.Do(t, err)
		req.Header.Set("User-Agent", "racflow (probe)")
		res, err := http.DefaultClient.Do(req)
		must.Do(t, err)
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	o := Options{Faults: []Fault{{Kind: Status, Status: 503, Calls: []int{0}}}, Answer: func(Ask, int) string { return "of the test" }}
	s := Serve(t, o)
	if status, text := probe(s); status != 200 || !strings.Contains(text, `"answer"`) {
		t.Errorf("status %d, %s", status, text)
	}
	must.Equal(t, "calls, given, most at once, probes", [4]int{0, 0, 0, 1}, [4]int{s.Calls(), len(s.Given()), s.MostAtOnce(), len(s.Probes())})
	must.Equal(t, "model of the probe", "m", s.Probes()[0].Model)
	if status, _, _, _ := post(t, t.Context(), s, "/chat/completions", hello); status != 503 {
		t.Errorf("the first request that is no probe got status %d, not its fault", status)
	}
	o.Probes = true
	s = Serve(t, o)
	if status, _ := probe(s); status != 503 {
		t.Errorf("status %d, not the fault's", status)
	}
	if status, text := probe(s); status != 200 || !strings.Contains(text, "of the test") || s.Calls() != 2 || len(s.Probes()) != 2 {
		t.Errorf("status %d, %s; %d calls, %d probes", status, text, s.Calls(), len(s.Probes()))
	}
}
