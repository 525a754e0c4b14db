package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
)

func TestFailures(t *testing.T) {
	header := func(h ...string) http.Header {
		all := http.Header{}
		for i := 0; i < len(h); i += 2 {
			all.Set(h[i], h[i+1])
		}
		return all
	}
	api := func(message string) string { return fmt.Sprintf(`{"error": {"message": %q, "type": "x"}}`, message) }
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		code   sdk.Code
		after  time.Duration
		text   string // a part of the error
	}{
		{"bad key, repeated", 401, nil, api("Incorrect API key provided: " + key), sdk.CodeInvalid, 0, "(secret); check api_key"},
		{"forbidden, as text", 403, nil, "no access for Bearer " + key, sdk.CodeInvalid, 0, "no access for Bearer (secret)"},
		{"bad request", 400, nil, api("too long"), sdk.CodeInvalid, 0, "too long"},
		{"unknown model", 404, nil, `{"error": "model 'tiny' not found"}`, sdk.CodeInvalid, 0, "check base_url, endpoint and model"},
		{"redirect to nowhere", 304, nil, "", sdk.CodeInvalid, 0, "304"},
		{"timeout", 408, nil, "", sdk.CodeTransient, 0, "408"},
		{"conflict", 409, nil, "", sdk.CodeTransient, 0, "409"},
		{"rate limit", 429, nil, api("slow down"), sdk.CodeTransient, 0, "slow down"},
		{"rate limit, milliseconds first", 429, header("Retry-After-Ms", "1500", "Retry-After", "9"), api(""), sdk.CodeTransient, 1500 * time.Millisecond, "429"},
		{"rate limit, seconds", 429, header("Retry-After", "2"), api(""), sdk.CodeTransient, 2 * time.Second, "429"},
		{"quota, not to be retried", 429, header("X-Should-Retry", "false"), api("no money"), sdk.CodeInvalid, 0, "no money"},
		{"overload", 503, header("Retry-After", "1"), "<html>\n <b>busy</b></html>", sdk.CodeTransient, time.Second, "<html> <b>busy</b></html>"},
		{"to be retried", 400, header("X-Should-Retry", "true"), "", sdk.CodeTransient, 0, "400"},
		{"not JSON", 200, nil, "<html>" + key + "</html>", sdk.CodeInvalid, 0, "check base_url"},
		{"cut short", 200, header("Content-Length", "999"), `{"choices": [`, sdk.CodeTransient, 0, "unexpected EOF"},
		{"other JSON", 200, nil, `{"choices": "` + key + `"}`, sdk.CodeInvalid, 0, "asking tiny"},
		{"no choices", 200, nil, `{"choices": []}`, sdk.CodeTransient, 0, "no choices"},
		{"a long page", 500, nil, strings.Repeat("é", 290) + key + strings.Repeat("x", 9000), sdk.CodeTransient, 0, "..."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := serve(t, 1, "", func(w http.ResponseWriter, _ *http.Request, _ body) {
				for name, values := range test.header {
					w.Header()[name] = values
				}
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			})
			err := failure(t, v)
			coded := new(sdk.Error)
			if !errors.As(err, &coded) || coded.Code != test.code || coded.RetryAfter != test.after {
				t.Errorf("error %#v, want code %d after %s", err, test.code, test.after)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %q, want %q in it", err, test.text)
			}
		})
	}
}

func TestLostConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { time.Sleep(200 * time.Millisecond) }))
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, v := range map[string]*voter{
		"slow server": openAt(t, server.URL, 1, `, "timeout": "20ms"`),
		"no server":   openAt(t, gone.URL, 1, ""),
	} {
		if err := failure(t, v); sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), "check base_url") {
			t.Errorf("%s: error %q, want a transient one with advice", name, err)
		}
	}
}

// failure samples one item and returns its error, which must not hold the key.
func failure(t *testing.T, v *voter) error {
	t.Helper()
	_, err := v.Sample(t.Context(), items("p"))
	var rows sdk.RowErrors
	if !errors.As(err, &rows) || rows[0] == nil {
		t.Fatalf("error %v, want one of row 0", err)
	}
	for e := rows[0]; e != nil; e = errors.Unwrap(e) {
		if text := fmt.Sprintf("%v %#v", e, e); strings.Contains(text, key[:10]) {
			t.Errorf("the key stands in %q", text)
		}
	}
	return rows[0]
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", 0},
		{"250", "", 250 * time.Millisecond},
		{"250", "7", 250 * time.Millisecond},
		{"soon", "7", 7 * time.Second},
		{"", "0.5", 500 * time.Millisecond},
		{"", "Wed, 01 May 2024 12:00:30 GMT", 30 * time.Second},
		{"", "Wed, 01 May 2024 11:00:00 GMT", 0},
		{"", "-3", 0},
		{"", "NaN", 0},
		{"", "1e300", 24 * time.Hour},
		{"", "soon", 0},
	}
	for _, test := range tests {
		h := http.Header{}
		h.Set("retry-after-ms", test.ms)
		h.Set("retry-after", test.after)
		if got := retryAfter(h, now); got != test.want {
			t.Errorf("retryAfter(%q, %q) = %s, want %s", test.ms, test.after, got, test.want)
		}
	}
}

func TestArguments(t *testing.T) {
	tests := []struct{ config, argument string }{
		{`{}`, "model"},
		{`{"model": ""}`, "model"},
		{`{"model": "gpt-5-mini"}`, "model"},
		{`{"model": "m", "base_url": "localhost:8080"}`, "base_url"},
		{`{"model": "m", "base_url": "/v1"}`, "base_url"},
		{`{"model": "m", "api_key": "` + key + `\nx"}`, "api_key"},
		{`{"model": "m", "endpoint": "responses"}`, "endpoint"},
		{`{"model": "m", "temperature": -1}`, "temperature"},
		{`{"model": "m", "max_tokens": -1}`, "max_tokens"},
		{`{"model": "m", "concurrency": 0}`, "concurrency"},
		{`{"model": "m", "timeout": "0s"}`, "timeout"},
	}
	for _, test := range tests {
		_, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(test.config))
		if fault := new(sdk.ArgumentError); !errors.As(err, &fault) || fault.Argument != test.argument {
			t.Errorf("%s: error %v, want one about %s", test.config, err, test.argument)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("the key stands in %q", err)
		}
	}
}

func TestModelsThatTakeOneChoice(t *testing.T) {
	config := `{"model": "gpt-5-mini", "temperature": 1, "max_tokens": 0, "stop": ""}`
	stage, err := Stage().Open(t.Context(), sdk.Setup{Samples: 3}, []byte(config))
	if err != nil || stage.(*voter).choices.Load() != 1 {
		t.Errorf("error %v; want one choice per request", err)
	}
}
