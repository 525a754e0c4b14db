package api

import (
	"net/http"
	"testing"
	"time"
)

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

// FuzzUsage reads what a server says of its cost, whatever it says.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage": {"prompt_tokens": -1, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9}}}`))
	f.Add([]byte(`{"usage": {"total_tokens": 5}}`))
	f.Add([]byte(`{"usage": null}`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if u := Usage(reply); u.CachedTokens > u.InputTokens || u.OutputTokens > 1<<62 {
			t.Errorf("%s gives %+v", reply, u)
		}
	})
}
