package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

const (
	key    = "sk-0123456789abcdef"
	header = "gateway-0123456789"
)

// client returns a client of a server that answers with handle.
func client(t *testing.T, c api.Config, handle http.HandlerFunc) (*api.Client, *apitest.Host) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	host := &apitest.Host{}
	if c.APIKey == "" {
		c.APIKey = key
	}
	c.BaseURL, c.APIKey, c.Host = server.URL+"/v1/", c.APIKey+"\n", host
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	made := api.New(c)
	t.Cleanup(func() { _ = made.Close() })
	return made, host
}

func TestRequest(t *testing.T) {
	var got map[string]any
	c, host := client(t, api.Config{
		Service: api.Service{Headers: map[string]string{"X-Gateway": header}, Body: `{"user": "me", "top_k": 20}`},
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/ask" || r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("X-Gateway") != header || r.Header.Get("X-Further") != "yes" {
			t.Errorf("asked %s with %v", r.URL.Path, r.Header)
		}
		_ = json.NewDecoder(r.Body).Decode(&got)
		fmt.Fprint(w, `{"answer": 7, "usage": {"prompt_tokens": 100, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 64}}}`)
	})
	r := &api.Request{Client: c, Tokens: 50, Header: http.Header{"X-Further": {"yes"}}}
	var reply struct{ Answer int }
	if err := r.Post(t.Context(), "/ask", map[string]any{"model": "m", "temperature": 0, "user": "not me"}, &reply); err != nil || reply.Answer != 7 {
		t.Fatalf("reply %v, error %v", reply, err)
	}
	if diff := cmp.Diff(map[string]any{"model": "m", "temperature": 0., "user": "me", "top_k": 20.}, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	cost := sdk.Usage{InputTokens: 100, CachedTokens: 64, OutputTokens: 3}
	if r.Usage() != cost {
		t.Errorf("usage %+v", r.Usage())
	}
	if diff := cmp.Diff([]sdk.Result{{Status: sdk.StatusOK, Usage: cost}}, host.Results(t)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	call := host.Calls()[0]
	if call.Endpoint != c.Address() || strings.HasSuffix(call.Endpoint, "/") || call.Tokens < 60 || call.Tokens > 90 {
		t.Errorf("call %+v at %s", call, c.Address())
	}
}

// TestReadsAndJoins: a stream of events is joined, and the caller's Read reads the reply. A stream that breaks off is
// lost.
func TestReadsAndJoins(t *testing.T) {
	shown := func(key string) http.Header { return http.Header{"X-Key": {key}} }
	for _, test := range []struct {
		kind, stream string
		code         sdk.Code
	}{
		{"text/event-stream; charset=utf-8", "whole", 0},
		{"text/plain", "data: whole", 0},
		{"text/plain", "event: message\ndata: whole", 0},
		{"text/event-stream", "broken", sdk.CodeTransient},
		{"text/plain", "whole", sdk.CodeInvalid}, // no stream
	} {
		c, host := client(t, api.Config{Key: shown}, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") != key || r.Header.Get("Authorization") != "" {
				t.Errorf("asked with %v", r.Header)
			}
			w.Header().Set("Content-Type", test.kind)
			fmt.Fprint(w, test.stream)
		})
		r := &api.Request{Client: c, Whole: true}
		r.Join = func(events []byte) ([]byte, error) {
			if strings.HasSuffix(string(events), "whole") {
				return []byte(`"` + key + `"`), nil
			}
			return nil, errors.New("it broke off")
		}
		var got string
		r.Read = func(reply []byte) (sdk.Usage, error) {
			got = string(reply)
			return sdk.Usage{InputTokens: 7}, nil
		}
		err := r.Post(t.Context(), "/ask", json.RawMessage(`{}`), nil)
		result := host.Results(t)[0]
		if test.code != 0 {
			if sdk.CodeOf(err) != test.code || result.Lost != (test.code == sdk.CodeTransient) {
				t.Errorf("%s: error %v, result %+v", test.stream, err, result)
			}
			continue
		}
		if err != nil || got != `"(secret)"` || r.Usage().InputTokens != 7 || result != (sdk.Result{Status: sdk.StatusOK, Usage: r.Usage()}) {
			t.Errorf("%s: read %s, %v, result %+v", test.stream, got, err, result)
		}
	}
}

// TestRefusalOf: a refusal has the server's message without secrets. A short secret may be a part of the refused
// field's name: it stays.
func TestRefusalOf(t *testing.T) {
	for given, message := range map[string]string{"": "no temperature for (secret)", "x": "no temperature for " + key, "per": "no temperature for " + key, "temperature": "no (secret) for " + key} {
		c, _ := client(t, api.Config{Service: api.Service{APIKey: given}}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error": {"message": "no temperature for %s", "param": "temp", "code": "unsupported"}}`, key)
		})
		err := (&api.Request{Client: c}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
		want := api.Refusal{Status: 400, Param: "temp", Code: "unsupported", Message: message}
		if got, ok := api.RefusalOf(err); !ok || got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, ok := api.RefusalOf(errors.New("another")); ok {
		t.Error("another error is a refusal")
	}
}

// Answers are cached before the next call, and a cached answer that cannot be used still counts.
func TestOnReply(t *testing.T) {
	c, host := client(t, api.Config{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"answer": 7}`) })
	var reply struct{ Answer int }
	unusable := errors.New("unusable")
	r := &api.Request{Client: c, OnReply: func() error {
		c.CachePut(t.Context(), []sdk.Key{sdk.KeyOf("a"), sdk.KeyOf("b")}, [][]byte{nil, fmt.Append(nil, reply.Answer)})
		return unusable
	}}
	if err := r.Post(t.Context(), "/ask", map[string]any{}, &reply); !errors.Is(err, unusable) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"acquire", "cache", "release"}, host.Events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if result := host.Results(t); len(result) != 1 || result[0].Status != sdk.StatusOK {
		t.Errorf("result %+v", result)
	}
	found, err := c.CacheGet(t.Context(), []sdk.Key{sdk.KeyOf("b"), sdk.KeyOf("a")})
	if err != nil || string(found[0]) != "7" || found[1] != nil {
		t.Errorf("found %q, error %v", found, err)
	}
}

// A call is released even where reading its reply panics.
func TestPanicReleases(t *testing.T) {
	c, host := client(t, api.Config{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		_ = (&api.Request{Client: c, OnReply: func() error { panic("a bug") }}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
	}()
	if results := host.Results(t); len(results) != 1 {
		t.Errorf("results %+v", results)
	}
}

// A key that the server repeats must not be cached with the answer.
func TestARepeatedSecretIsNoPartOfAReply(t *testing.T) {
	c, _ := client(t, api.Config{Service: api.Service{Headers: map[string]string{"X-Gateway": header, "X-Kind": "card_lost"}}}, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"answer": "card_lost %s %s"}`, r.Header.Get("Authorization"), r.Header.Get("X-Gateway"))
	})
	var reply struct{ Answer string }
	if err := (&api.Request{Client: c}).Post(t.Context(), "/ask", map[string]any{}, &reply); err != nil {
		t.Fatal(err)
	}
	if want := "card_lost Bearer (secret) (secret)"; reply.Answer != want {
		t.Errorf("got %q, want %q", reply.Answer, want)
	}
}

func TestFailures(t *testing.T) {
	message := func(text string) string { return fmt.Sprintf(`{"error": {"message": %q, "type": "x"}}`, text) }
	soon := time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)
	tests := []struct {
		name   string
		status int
		header map[string]string
		body   string
		code   sdk.Code
		result sdk.Status
		after  time.Duration // with a second's tolerance; the result may have 0
		text   string        // a part of the error
	}{
		{"bad key, repeated", 401, nil, message("Incorrect API key provided: " + key), sdk.CodeInvalid, sdk.StatusDenied, 0, "(secret); check api_key"},
		{"forbidden, as text", 403, nil, "no access for Bearer " + key + " by " + header, sdk.CodeInvalid, sdk.StatusDenied, 0, "no access for Bearer (secret) by (secret)"},
		{"bad request", 400, nil, message("too long"), sdk.CodeInvalid, sdk.StatusRefused, 0, "too long"},
		{"unknown model", 404, nil, `{"error": "model 'tiny' not found"}`, sdk.CodeInvalid, sdk.StatusDenied, 0, "model 'tiny' not found; check base_url"},
		{"not modified", 304, nil, "", sdk.CodeInvalid, sdk.StatusDenied, 0, "304"},
		{"timeout", 408, nil, "", sdk.CodeTransient, sdk.StatusDown, 0, "408"},
		{"conflict", 409, nil, "", sdk.CodeTransient, sdk.StatusRefused, 0, "409"},
		{"rate limit", 429, nil, message("slow down"), sdk.CodeTransient, sdk.StatusBusy, time.Second, "slow down"},
		{"milliseconds first", 429, map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, message(""), sdk.CodeTransient, sdk.StatusBusy, 1500 * time.Millisecond, "429"},
		{"seconds", 429, map[string]string{"Retry-After": "2"}, message(""), sdk.CodeTransient, sdk.StatusBusy, 2 * time.Second, "429"},
		{"a date", 429, map[string]string{"Retry-After": soon}, message(""), sdk.CodeTransient, sdk.StatusBusy, 30 * time.Second, "429"},
		{"not to be retried", 429, map[string]string{"X-Should-Retry": "false"}, message("no money"), sdk.CodeInvalid, sdk.StatusRefused, 0, "no money"},
		{"no money", 429, nil, `{"error": {"message": "quota", "code": "insufficient_quota"}}`, sdk.CodeUnavailable, sdk.StatusDenied, 0, "quota; the account has insufficient quota"},
		{"no money, in words", 400, nil, `{"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}}`, sdk.CodeUnavailable, sdk.StatusDenied, 0, "the account has insufficient quota"},
		{"no money, by status", 402, nil, message("Insufficient Balance"), sdk.CodeUnavailable, sdk.StatusDenied, 0, "Insufficient Balance; the account has insufficient quota"},
		{"overload with a time", 503, map[string]string{"Retry-After": "1"}, "<html>\n <b>busy</b></html>", sdk.CodeTransient, sdk.StatusBusy, time.Second, "<html> <b>busy</b></html>"},
		{"overload without", 503, nil, "", sdk.CodeTransient, sdk.StatusDown, time.Second, "503"},
		{"overloaded", 529, nil, message("Overloaded"), sdk.CodeTransient, sdk.StatusBusy, 0, "Overloaded"},
		{"to be retried", 400, map[string]string{"X-Should-Retry": "true"}, "", sdk.CodeTransient, sdk.StatusRefused, 0, "400"},
		{"a page", 200, nil, "<html>" + key + "</html>", sdk.CodeInvalid, sdk.StatusDenied, 0, "not JSON"},
		{"broken JSON", 200, nil, `{"choices": [`, sdk.CodeTransient, sdk.StatusDown, 0, "broken JSON"},
		{"cut short", 200, map[string]string{"Content-Length": "999"}, `{"choices": [`, sdk.CodeTransient, sdk.StatusDown, 0, "unexpected EOF"},
		{"an error with status 200", 200, nil, `{"error": {"message": "upstream is busy", "code": 429}}`, sdk.CodeTransient, sdk.StatusBusy, time.Second, "upstream is busy"},
		{"too long", 200, nil, `"` + strings.Repeat("x", 3000) + `"`, sdk.CodeInvalid, sdk.StatusOK, 0, "longer than"},
		{"a stream that ends in overload", 200, nil, `{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}`, sdk.CodeTransient, sdk.StatusBusy, 0, "Overloaded"},
		{"a stream that ends in a limit", 200, nil, `{"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}`, sdk.CodeTransient, sdk.StatusBusy, time.Second, "Slow down"},
		{"an error with status 200, in words", 200, nil, `{"error": "Unexpected endpoint (POST /chat)", "choices": null}`, sdk.CodeTransient, sdk.StatusDown, 0, "answered with an error: Unexpected endpoint"},
		{"an error beside an answer", 200, nil, `{"error": "slow", "data": [1]}`, 0, sdk.StatusOK, 0, ""},
		{"details", 422, nil, `{"detail": "no such field"}`, sdk.CodeInvalid, sdk.StatusRefused, 0, "422: no such field"},
		{"a list of details", 422, nil, `{"detail": [{"msg": "no such field"}]}`, sdk.CodeInvalid, sdk.StatusRefused, 0, "422: no such field"},
		{"another form", 200, nil, `[]`, sdk.CodeInvalid, sdk.StatusRefused, 0, "another form"},
		{"its own error, in words", 500, nil, message("the answer does not fit the schema"), sdk.CodeTransient, sdk.StatusRefused, 0, "does not fit the schema"},
		{"a long page", 500, nil, strings.Repeat("é", 290) + key + strings.Repeat("x", 900), sdk.CodeTransient, sdk.StatusDown, 0, "..."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, host := client(t, api.Config{Service: api.Service{Headers: map[string]string{"X-Gateway": "Bearer " + header}}, MaxReply: 2000}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/before" { // it has answered
					_, _ = io.WriteString(w, `{}`)
					return
				}
				for name, value := range test.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			if err := (&api.Request{Client: c}).Post(t.Context(), "/before", map[string]any{}, &struct{}{}); err != nil {
				t.Fatal(err)
			}
			err := (&api.Request{Client: c}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
			coded := new(sdk.Error)
			if failed := errors.As(err, &coded); failed != (test.code != 0) || coded.Code != test.code || !near(coded.RetryAfter, test.after) {
				t.Errorf("error %#v, want code %d after %s", err, test.code, test.after)
			}
			if err != nil && !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("error %q, want %q in it", err, test.text)
			}
			result := host.Results(t)[1:]
			if len(result) != 1 || result[0].Status != test.result || test.result == sdk.StatusBusy && test.after != time.Second && !near(result[0].RetryAfter, test.after) {
				t.Errorf("result %+v, want status %d after %s", result, test.result, test.after)
			}
			reasoned := test.result == sdk.StatusBusy || test.result == sdk.StatusDown || test.result == sdk.StatusDenied
			if len(result) == 1 && (result[0].Reason != "") != reasoned || result[0].Reason != "" && result[0].Reason != err.Error() {
				t.Errorf("result %q of %v", result[0].Reason, err)
			}
			if lost := test.status == 200 && test.result == sdk.StatusDown && test.text != "answered with an error: Unexpected endpoint"; result[0].Lost != lost {
				t.Errorf("lost %v: it may have to be paid for", result[0].Lost)
			}
			hush(t, err)
		})
	}
}

// TestImpossibleUsage: impossible costs in a reply are ignored, and the Host gets them unchanged.
func TestImpossibleUsage(t *testing.T) {
	for usage, believed := range map[string]bool{
		`{"prompt_tokens": 10, "completion_tokens": 3}`:                   true,
		`{"prompt_tokens": 10, "completion_tokens": -5}`:                  false,
		`{"prompt_tokens": 10, "completion_tokens": 9223372036854775807}`: false,
		`{"prompt_tokens": 10, "completion_tokens": 700000}`:              false,
	} {
		c, host := client(t, api.Config{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"usage": %s}`, usage) })
		r := &api.Request{Client: c, Tokens: 32, Bounded: true}
		if err := r.Post(t.Context(), "/ask", map[string]any{}, &struct{}{}); err != nil {
			t.Fatal(err)
		}
		got := host.Results(t)[0]
		if (r.Usage() == sdk.Usage{InputTokens: 10, OutputTokens: 3}) != believed || !believed && (r.Usage() != sdk.Usage{} || got.Reason != usage) || believed && got.Reason != "" {
			t.Errorf("%s: %+v, result %+v", usage, r.Usage(), got)
		}
		if host.Calls()[0].Believes(got.Usage) != believed {
			t.Errorf("%s: the host gets %+v", usage, got.Usage)
		}
	}
}

// A service that never gives an answer is not the intended one.
func TestNoAnswers(t *testing.T) {
	good := true
	c, host := client(t, api.Config{}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"good": %t}`, good) })
	var reply struct{ Good bool }
	ask := func() error {
		return (&api.Request{Client: c, OnReply: func() error {
			if !reply.Good {
				return api.NoAnswer("the reply holds nothing")
			}
			return nil
		}}).Post(t.Context(), "/ask", map[string]any{}, &reply)
	}
	for _, n := range []int{1, 20, 1, 21} { // good ones and others, in turns
		for range n {
			if err := ask(); good != (err == nil) || err != nil && sdk.CodeOf(err) != sdk.CodeTransient {
				t.Fatalf("error %v", err)
			}
		}
		good = !good
	}
	counts := map[sdk.Status]int{}
	for _, o := range host.Results(t) {
		counts[o.Status]++
		if (o.Status == sdk.StatusDenied) != (o.Reason == "the reply holds nothing") {
			t.Errorf("result %+v", o)
		}
	}
	if diff := cmp.Diff(map[sdk.Status]int{sdk.StatusOK: 2, sdk.StatusRefused: 40, sdk.StatusDenied: 1}, counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func near(a, b time.Duration) bool { return (a-b).Abs() < 2*time.Second && (a == 0) == (b == 0) }

// hush checks that no error in a chain contains a secret.
func hush(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if text := fmt.Sprintf("%v %#v", e, e); strings.Contains(text, key[:10]) || strings.Contains(text, header[:12]) {
			t.Errorf("a secret stands in %q", text)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("%d: another host was asked, with %v", status, r.Header)
		}))
		c, _ := client(t, api.Config{Service: api.Service{Headers: map[string]string{"X-Gateway": header}}}, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/v1/ask?key="+key, status)
		})
		err := (&api.Request{Client: c}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
		if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(fmt.Sprint(err), other.URL) {
			t.Errorf("%d: error %v, want one that names %s", status, err, other.URL)
		}
		hush(t, err)
		other.Close()
	}
}

func TestLost(t *testing.T) {
	release := make(chan struct{})
	slow, host := client(t, api.Config{Service: api.Service{Timeout: 30 * time.Millisecond}}, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	err := (&api.Request{Client: slow}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
	if sdk.CodeOf(err) != sdk.CodeDeadline || !strings.Contains(fmt.Sprint(err), "no reply within 30ms") {
		t.Errorf("error %v, want one with which nothing is sent again", err)
	}
	if diff := cmp.Diff([]sdk.Result{{Status: sdk.StatusLeft, Lost: true}}, host.Results(t)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if _, err := (api.Transfer{Client: slow, Method: http.MethodGet, Path: "/jobs"}).Do(t.Context()); sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(fmt.Sprint(err), "no reply within 30ms") {
		t.Errorf("error %v, want one after which the same is asked for again", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left, host := client(t, api.Config{}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices only then that the client leaves
		cancel()
		<-r.Context().Done()
	})
	if err := (&api.Request{Client: left}).Post(ctx, "/ask", map[string]any{}, &struct{}{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if diff := cmp.Diff([]sdk.Result{{Status: sdk.StatusLeft}}, host.Results(t)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}

	gone := httptest.NewServer(nil)
	gone.Close()
	host = &apitest.Host{}
	nobody := api.New(api.Config{BaseURL: gone.URL, Service: api.Service{Timeout: time.Second}, Host: host})
	err = (&api.Request{Client: nobody}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
	coded := new(sdk.Error)
	if !errors.As(err, &coded) || coded.Code != sdk.CodeTransient || coded.RetryAfter != time.Second || !strings.Contains(fmt.Sprint(err), "check base_url") {
		t.Errorf("error %#v, want one whose row waits its turn", err)
	}
	if diff := cmp.Diff([]sdk.Result{{Status: sdk.StatusDown, RetryAfter: time.Second, Reason: fmt.Sprint(err)}}, host.Results(t)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// TestMost: there is an upper bound only if the reply has a limit and the file adds nothing that may raise the cost.
func TestMost(t *testing.T) {
	for name, test := range map[string]struct {
		body    string
		bounded bool
		known   bool
	}{
		"bounded":         {`{"user": "é"}`, true, true},
		"not bounded":     {``, false, false},
		"another limit":   {`{"max_tokens": 9}`, true, false},
		"something else":  {`{"user": "me", "tools": []}`, true, false},
		"nothing besides": {``, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			c, host := client(t, api.Config{Service: api.Service{Body: test.body}}, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = len(body)
				fmt.Fprint(w, `{}`)
			})
			r := &api.Request{Client: c, Tokens: 50, Bounded: test.bounded}
			if err := r.Post(t.Context(), "/ask", map[string]any{"text": "a question"}, &struct{}{}); err != nil {
				t.Fatal(err)
			}
			want := sdk.Usage{}
			if test.known {
				want = sdk.Usage{InputTokens: uint64(sent), OutputTokens: 50}
			}
			if call := host.Calls()[0]; call.Most != want {
				t.Errorf("asked for %+v, want at most %+v", call, want)
			}
		})
	}
}

func TestNotAdmitted(t *testing.T) {
	c, host := client(t, api.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	host.Refuse = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
	err := (&api.Request{Client: c}).Post(t.Context(), "/ask", map[string]any{}, &struct{}{})
	if !errors.Is(err, host.Refuse) {
		t.Errorf("error %v, want the host's", err)
	}
	if err := (&api.Request{Client: c}).Post(t.Context(), "/\x00", map[string]any{}, nil); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("error %v, want an invalid address", err)
	}
}

func TestArguments(t *testing.T) {
	good := api.Config{BaseURL: "http://127.0.0.1/v1", Service: api.Service{Timeout: time.Second}}
	tests := []struct {
		change   func(*api.Config)
		argument string
	}{
		{func(c *api.Config) { c.BaseURL = "localhost:8080" }, "base_url"},
		{func(c *api.Config) { c.BaseURL = "/v1" }, "base_url"},
		{func(c *api.Config) { c.BaseURL = "http://me:" + key + "@host/v1" }, "base_url"},
		{func(c *api.Config) { c.BaseURL = "http://host/v1?key=" + key }, "base_url"},
		{func(c *api.Config) { c.APIKey = key + "\nx" }, "api_key"},
		{func(c *api.Config) { c.Headers = map[string]string{"a b": key} }, "headers"},
		{func(c *api.Config) { c.Headers = map[string]string{"a": key + "\n"} }, "headers"},
		{func(c *api.Config) { c.Headers = map[string]string{"Host": "x"} }, "headers"},
		{func(c *api.Config) { c.Body = `["user"]` }, "body"},
		{func(c *api.Config) { c.Body = `null` }, "body"},
		{func(c *api.Config) { c.Body, c.Reserved = `{"n": 3}`, []string{"n"} }, "body"},
	}
	for _, test := range tests {
		c := good
		test.change(&c)
		err := c.Check()
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != test.argument {
			t.Errorf("%+v: error %v, want one about %s", c, err, test.argument)
		}
		hush(t, err)
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

// The key of a reply depends on the whole body, the address, and how the reply is processed.
func TestKey(t *testing.T) {
	key := func(config, path, model string, parts ...string) sdk.Key {
		r := &api.Request{Client: api.New(api.Config{BaseURL: "http://h/v1", Service: api.Service{Body: config}})}
		return r.Key(path, map[string]any{"model": model, "input": "a"}, parts...)
	}
	plain := key("", "/ask", "m")
	for name, other := range map[string]sdk.Key{
		"path":   key("", "/tell", "m"),
		"body":   key("", "/ask", "n"),
		"config": key(`{"user": "me"}`, "/ask", "m"),
		"a part": key("", "/ask", "m", "line"),
	} {
		if other == plain {
			t.Errorf("%s does not change the key", name)
		}
	}
	if key(`{"a": 1, "b": [2]}`, "/ask", "m") != key("{\"b\":[2],\n\"a\":1}", "/ask", "m") || key("{}", "/ask", "m") != plain {
		t.Error("the form of the body argument changes the key")
	}
}
