package governor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/sdk"
)

// TestAlternative: a call whose caller has another service to ask waits for none that is down
// or wants a pause, and its denials do not stop a required stage.
func TestAlternative(t *testing.T) {
	good := sdk.Result{Status: sdk.StatusOK}
	results := map[string]sdk.Result{
		"down":   {Status: sdk.StatusDown, Reason: "connection refused"},
		"busy":   {Status: sdk.StatusBusy, RetryAfter: time.Minute},
		"denied": {Status: sdk.StatusDenied, Reason: "401: check api_key"},
	}
	for name, result := range results {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
				// A pause passes by itself; a service that is down may not come back.
				pauses, downs := refused[sdk.CodeTransient], refused[sdk.CodeUnavailable]
				if (pauses > 0) != (name != "denied") || (downs > 0) != (name == "down") || len(refused) > 2 {
					t.Errorf("refused: %v", refused)
				}
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
		})
	}
}
