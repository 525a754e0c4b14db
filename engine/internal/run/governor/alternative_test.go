package governor

import (
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
)

// TestAlternative: a call with an alternative service does not wait for a service that is down or
// wants a pause, and its denials do not stop a required stage.
func TestAlternative(t *testing.T) {
	good := sdk.Result{Status: sdk.StatusOK}
	results := map[string]sdk.Result{
		"down":   {Status: sdk.StatusDown, Reason: "connection refused"},
		"busy":   {Status: sdk.StatusBusy, RetryAfter: time.Minute},
		"denied": {Status: sdk.StatusDenied, Reason: "401: check api_key"},
	}
	for name, result := range results {
		bubble(t, name, func(t *testing.T) {
			c, _ := newControl(Options{})
			h := c.Stage(Stage{Name: "sample.llm", Required: true})
			refused := map[sdk.Code]int{}
			for range 2 * deniedInARow {
				release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://first/v1", Alternative: true})
				if err == nil {
					release(result)
					continue
				}
				refused[sdk.CodeOf(err)]++
				time.Sleep(time.Second / 5)
			}
			// The stage waits until one of its services is back.
			if (refused[sdk.CodeTransient] > 0) != (name != "denied") || len(refused) > 1 {
				t.Errorf("refused: %v", refused)
			}
			c.Cover("sample.llm")
			if _, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://first/v1", Alternative: true}); name == "down" && sdk.CodeOf(err) != sdk.CodeUnavailable {
				t.Errorf("where others answer meanwhile: %v", err)
			}
			h = c.Stage(Stage{Name: "sample.llm", Required: true})
			begin := time.Now()
			waited, err := ask(t, h, good)
			if err != nil || waited > 0 || time.Since(begin) > time.Second {
				t.Errorf("the other service: waited %s, error %v", waited, err)
			}
			if release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://first/v1"}); err != nil {
				t.Errorf("a call without an alternative does not wait: %v", err)
			} else {
				release(good)
			}
		})
	}
}
