package governor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// TestAgain: a stopped stage calls again, whether its service was down or denied its calls. A stage with
// a spent budget does not.
func TestAgain(t *testing.T) {
	for name, bad := range map[string]sdk.Result{
		"down":   {Status: sdk.StatusDown, Reason: "connection refused"},
		"denied": {Status: sdk.StatusDenied, Reason: "401"},
	} {
		bubble(t, name, func(t *testing.T) {
			c, _ := newControl(Options{})
			h := c.Stage(Stage{Name: "sample.llm", Required: true})
			if c.Again() {
				t.Error("nothing was stopped")
			}
			for err := error(nil); err == nil; {
				_, err = ask(t, h, bad)
			}
			if !c.Refuses("sample.llm") || !c.Again() || c.Refuses("sample.llm") {
				t.Error("it is not let call again")
			}
			time.Sleep(time.Second)
			if _, err := ask(t, h, sdk.Result{Status: sdk.StatusOK}); err != nil {
				t.Errorf("it calls again: %v", err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{Budget: pipeline.Budget{Tokens: 1}})
		h := c.Stage(Stage{Name: "sample.llm", Required: true})
		for err := error(nil); err == nil; {
			_, err = ask(t, h, sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 10}})
		}
		if c.Again() || !c.Refuses("sample.llm") {
			t.Error("what is spent is forgotten")
		}
	})
}
