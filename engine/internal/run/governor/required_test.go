package governor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestRequired: a required stage waits for its service, and the run ends if the service does not
// come back.
func TestRequired(t *testing.T) {
	down := sdk.Result{Status: sdk.StatusDown, Reason: "no such host"}
	absent := sdk.Result{Status: sdk.StatusDown, Reason: "connection refused"}
	good := sdk.Result{Status: sdk.StatusOK}
	busy := sdk.Result{Status: sdk.StatusBusy}
	denied := sdk.Result{Status: sdk.StatusDenied, Reason: "401: check api_key"}
	// fail makes the service count as down.
	fail := func(t *testing.T, h sdk.Host) {
		t.Helper()
		for range downInARow {
			must.Get(ask(t, h, down))(t)
			time.Sleep(downFor)
		}
	}
	tests := map[string]func(*testing.T, *Governor, sdk.Host) error{
		"never there": func(t *testing.T, _ *Governor, h sdk.Host) error {
			start := time.Now()
			for {
				if _, err := ask(t, h, down); err != nil {
					if took := time.Since(start); took < maxWait || took > maxWait+time.Second {
						t.Errorf("the run ended after %s", took)
					}
					return err
				}
			}
		},
		"never started": func(t *testing.T, _ *Governor, h sdk.Host) error {
			start := time.Now()
			for {
				if _, err := ask(t, h, absent); err != nil {
					if took := time.Since(start); took < maxAbsent || took > maxAbsent+time.Second {
						t.Errorf("the run ended after %s", took)
					}
					return err
				}
			}
		},
		"started in time": func(t *testing.T, _ *Governor, h sdk.Host) error {
			for range downInARow {
				must.Get(ask(t, h, absent))(t)
				time.Sleep(time.Second)
			}
			_, err := ask(t, h, good)
			return err
		},
		"restarted": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, good)
			for start := time.Now(); time.Since(start) < maxWait/2; {
				if _, err := ask(t, h, absent); err != nil {
					return err
				}
			}
			_, err := ask(t, h, good)
			return err
		},
		"a pause of minutes": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, sdk.Result{Status: sdk.StatusBusy, RetryAfter: 4 * time.Minute})
			waited, err := ask(t, h, good)
			if waited < 4*time.Minute {
				t.Errorf("it waited %s", waited)
			}
			return err
		},
		"slow to start": func(t *testing.T, _ *Governor, h sdk.Host) error {
			for start := time.Now(); time.Since(start) < maxWait/2; {
				if _, err := ask(t, h, down); err != nil {
					return err
				}
			}
			waited, err := ask(t, h, good) // at the last moment
			if waited < maxWait/3 {
				t.Errorf("it waited %s", waited)
			}
			return err
		},
		"not required any more": func(t *testing.T, c *Governor, h sdk.Host) error {
			fail(t, h)
			waiting := make(chan error)
			go func() {
				_, err := ask(t, h, good)
				waiting <- err
			}()
			synctest.Wait()
			c.Relax("sample.llm")
			for _, err := range []error{<-waiting, func() error { _, err := ask(t, h, good); return err }()} {
				if sdk.CodeOf(err) != sdk.CodeUnavailable {
					t.Errorf("error %v", err)
				}
			}
			again := c.Stage(Stage{Name: "sample.llm", Required: true})
			_, err := ask(t, again, good)
			return err
		},
		"back in time": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, good)
			fail(t, h)
			if waited, err := ask(t, h, good); err != nil || waited < firstCoolDown/2 || waited > maxWait {
				t.Errorf("it waited %s: %v", waited, err)
			}
			_, err := ask(t, h, good)
			return err
		},
		"stays away": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, good)
			fail(t, h)
			start := time.Now()
			for {
				if _, err := ask(t, h, down); err != nil {
					if took := time.Since(start); took < maxWait/2 || took > 2*maxWait {
						t.Errorf("the run ended after %s", took)
					}
					return err
				}
			}
		},
		"always busy": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, good)
			time.Sleep(time.Hour) // the time counts from the first refusal
			start := time.Now()
			for {
				if _, err := ask(t, h, busy); err != nil {
					if took := time.Since(start); took < maxBusy || took > maxBusy+pauses.Max {
						t.Errorf("the run ended after %s", took)
					}
					return err
				}
			}
		},
		"busy now and then": func(t *testing.T, _ *Governor, h sdk.Host) error {
			for range 30 {
				for range 3 {
					_, _ = ask(t, h, busy)
				}
				if _, err := ask(t, h, good); err != nil {
					return err
				}
				time.Sleep(maxBusy / 3)
			}
			return nil
		},
		"busy and seldom asked": func(t *testing.T, _ *Governor, h sdk.Host) error {
			for range 10 {
				_, _ = ask(t, h, busy)
				if _, err := ask(t, h, busy); err != nil {
					return err
				}
				time.Sleep(2 * maxBusy)
			}
			return nil
		},
		"denied": func(t *testing.T, c *Governor, h sdk.Host) error {
			for range deniedAtOnce {
				must.Get(ask(t, h, denied))(t)
			}
			other := c.Stage(Stage{Name: "sample.other", Required: true})
			if _, err := ask(t, other, good); err != nil {
				t.Errorf("another stage: %v", err)
			}
			_, err := ask(t, h, good)
			return err
		},
		"denied now and then": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, good)
			for range 3 {
				for range deniedInARow - 1 {
					_, _ = ask(t, h, denied)
				}
				if _, err := ask(t, h, good); err != nil {
					return err
				}
			}
			return nil
		},
		"denied from now on": func(t *testing.T, _ *Governor, h sdk.Host) error {
			_, _ = ask(t, h, good)
			for range deniedInARow {
				must.Get(ask(t, h, denied))(t)
			}
			_, err := ask(t, h, good)
			return err
		},
	}
	wants := map[string]string{
		"never there":        "sample.llm: http://api/v1 has never answered, in 2m0s (no such host)",
		"never started":      "sample.llm: no server has listened at http://api/v1 for 15s: start it, or set base_url to another (connection refused)",
		"stays away":         "sample.llm: http://api/v1 has been down for",
		"always busy":        "sample.llm: http://api/v1 has refused all calls as too many for 5m",
		"denied":             "sample.llm: none of its calls was served: 401: check api_key",
		"denied from now on": "sample.llm: its last 25 calls were denied: 401: check api_key",
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			c, _ := newControl(Options{})
			err := test(t, c, c.Stage(Stage{Name: "sample.llm", Required: true}))
			want := wants[name]
			if want == "" && err != nil || want != "" && (sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

// TestCovered: if other stages answer meanwhile, no call waits for an unreachable service. The service is
// tried less and less often, and once more on request. Denials stop the stage as usual.
func TestCovered(t *testing.T) {
	gone := sdk.Result{Status: sdk.StatusDown, RetryAfter: time.Second, Reason: "connection refused"}
	good := sdk.Result{Status: sdk.StatusOK}
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		h := c.Stage(Stage{Name: "sample.llm", Required: true})
		c.Cover("sample.llm", "sample.other")
		refused := func(o sdk.Result) bool {
			t.Helper()
			waited, err := ask(t, h, o)
			if waited > 0 || err != nil && sdk.CodeOf(err) != sdk.CodeUnavailable {
				t.Errorf("it waited %s: %v", waited, err)
			}
			return err != nil
		}
		for n := range goneInARow + 1 {
			if refused(gone) != (n == goneInARow) {
				t.Errorf("after %d failures", n)
			}
		}
		calls := 0
		for range 60 {
			time.Sleep(time.Second)
			if !refused(gone) {
				calls++
			}
		}
		if calls != 5 { // after 1, 2, 4, 8, 16 and 32 seconds: the last is still to come
			t.Errorf("%d trial calls in a minute", calls)
		}
		c.TryAll()
		for range 2 { // the trial, and a call after it
			if refused(good) {
				t.Error("the service is back")
			}
		}
		other := c.Stage(Stage{Name: "sample.other", Required: true})
		c.Cover("sample.other")
		for range deniedAtOnce {
			must.Get(ask(t, other, sdk.Result{Status: sdk.StatusDenied}))(t)
		}
		if _, err := ask(t, other, good); sdk.CodeOf(err) != sdk.CodeStopped || !c.Refuses("sample.other") {
			t.Errorf("denied: %v", err)
		}
	})
}
