package api_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// TestOutage: rows wait if a service has never answered or fails on every request. A single request that fails on the
// service uses up its retries.
func TestOutage(t *testing.T) {
	const page, own = "Internal Server Error", `{"error": {"message": "it went wrong", "type": "server_error"}}`
	ask := func(n int) map[string]any { return map[string]any{"n": n} }
	for name, test := range map[string]struct {
		before []int // statuses of the calls before, each of another request
		same   bool  // the calls before were of the same request
		status int
		body   string
		result sdk.Status
		after  time.Duration
	}{
		"never answered, in words":    {nil, false, 500, own, sdk.StatusDown, time.Second},
		"never answered, with a page": {nil, false, 502, page, sdk.StatusDown, time.Second},
		"it has answered":             {[]int{200}, false, 500, own, sdk.StatusRefused, 0},
		"it has refused":              {[]int{400}, false, 500, own, sdk.StatusRefused, 0},
		"it was busy":                 {[]int{429}, false, 502, page, sdk.StatusDown, 0},
		"it fails now and then":       {[]int{200, 500, 500, 500, 500, 200, 500}, false, 500, own, sdk.StatusRefused, 0},
		"it fails":                    {[]int{200, 500, 500, 500, 500}, false, 500, own, sdk.StatusDown, time.Second},
		"it fails on one request":     {[]int{200, 500, 500, 500, 500, 500, 500}, true, 500, own, sdk.StatusRefused, 0},
		"to be asked again":           {nil, false, 409, own, sdk.StatusRefused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			call := 0
			c, host := client(t, api.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				status, body := test.status, test.body
				if call < len(test.before) {
					status, body = test.before[call], own
				}
				call++
				if status == 200 {
					body = "{}"
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})
			var err error
			for i := range len(test.before) + 1 {
				n := i
				if test.same {
					n = 0
				}
				err = (&api.Request{Client: c}).Post(t.Context(), "/ask", ask(n), &struct{}{})
			}
			coded := new(sdk.Error)
			if !errors.As(err, &coded) || coded.Code != sdk.CodeTransient || coded.RetryAfter != test.after {
				t.Errorf("error %#v, want one to wait %s", err, test.after)
			}
			results := host.Results(t)
			if last := results[len(results)-1]; last.Status != test.result || (last.Reason == fmt.Sprint(err)) != (test.result == sdk.StatusDown) {
				t.Errorf("result %+v of %v, want status %d", last, err, test.result)
			}
		})
	}
}
