package governor

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestWaiting: a service that keeps calls waiting is reported after five seconds, then every thirty
// seconds. Other services are not reported.
func TestWaiting(t *testing.T) {
	down := sdk.Result{Status: sdk.StatusDown, Reason: "no such host"}
	good := sdk.Result{Status: sdk.StatusOK}
	busy := func(after time.Duration) sdk.Result {
		return sdk.Result{Status: sdk.StatusBusy, RetryAfter: after, Reason: "429: slow down"}
	}
	const refused, slow = "waiting for sample.llm: 1 call, no such host (http://api/v1)", "waiting for sample.llm: 429: slow down (http://api/v1)"
	tests := map[string]struct {
		do   func(*testing.T, sdk.Host)
		want []string // when, in seconds, and what
	}{
		"a service that works": {func(t *testing.T, h sdk.Host) {
			for range 100 {
				_, _ = ask(t, h, good)
				time.Sleep(time.Second)
			}
		}, nil},
		"down until the run ends": {func(t *testing.T, h sdk.Host) {
			for err := error(nil); err == nil; _, err = ask(t, h, down) {
			}
			time.Sleep(time.Hour) // nobody waits any more
		}, []string{
			"5 " + refused, "35 " + refused,
			"65 " + refused, "95 " + refused,
		}},
		"back soon": {func(t *testing.T, h sdk.Host) {
			_, _ = ask(t, h, down)
			time.Sleep(3 * time.Second)
			_, _ = ask(t, h, good)
			time.Sleep(time.Hour)
		}, nil},
		// Refused calls wait in their stage and are then repeated.
		"too many calls": {func(t *testing.T, h sdk.Host) {
			_, _ = ask(t, h, busy(90*time.Second))
			time.Sleep(90 * time.Second)
			_, _ = ask(t, h, good)
			time.Sleep(time.Hour)
		}, []string{"5 " + slow + ", next try in 85 s", "35 " + slow + ", next try in 55 s", "65 " + slow + ", next try in 25 s"}},
		"too many calls for a moment": {func(t *testing.T, h sdk.Host) {
			for range 10 {
				_, _ = ask(t, h, busy(4*time.Second))
				_, _ = ask(t, h, good)
			}
		}, nil},
		"a pause among answers": {func(t *testing.T, h sdk.Host) {
			late := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"}))(t)
			_, _ = ask(t, h, busy(20*time.Second))
			late(good)
			_, _ = ask(t, h, good)
		}, []string{"5 " + strings.Replace(slow, "429", "1 call, 429", 1) + ", next try in 15 s"}},
		"for longer than anybody waits": {func(t *testing.T, h sdk.Host) {
			_, _ = ask(t, h, busy(3*time.Hour))
			_, _ = ask(t, h, good)
		}, nil},
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			start, got := time.Now(), []string(nil)
			reporter := progress.NewWaitReporter(func(w progress.LongWait) {
				if since := time.Since(start) - w.For; since < 0 || since > 10*time.Millisecond {
					t.Errorf("it has waited for %s", w.For)
				}
				if strings.HasPrefix(w.Why, down.Reason) { // the time of the trial is random
					if w.Again > firstCoolDown<<3 {
						t.Errorf("it is tried again in %s", w.Again)
					}
					w.Again, w.Why = 0, strings.TrimSuffix(w.Why, ", it is being tried again")
				}
				got = append(got, fmt.Sprintf("%d %s", time.Since(start)/time.Second, w))
			})
			defer reporter.Close()
			c, _ := newControl(Options{Waiting: reporter})
			reporter.Watch(c.Waits)
			test.do(t, c.Stage(Stage{Name: "sample.llm", Required: true}))
			must.Equal(t, "reported", test.want, got)
		})
	}
}

// TestWaitsForOthers: limits, calls without a reply, and a full budget are reported, too.
func TestWaitsForOthers(t *testing.T) {
	good := sdk.Result{Status: sdk.StatusOK}
	call := sdk.Call{Endpoint: "http://api/v1", Most: sdk.Usage{InputTokens: 10}}
	hang := func(t *testing.T, h sdk.Host, d time.Duration, o sdk.Result) {
		release, err := h.Acquire(t.Context(), call)
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(d)
		release(o)
	}
	tests := map[string]struct {
		limit  *pipeline.Limit
		budget pipeline.Budget
		do     func(*testing.T, sdk.Host)
		want   []string
	}{
		"a limit": {&pipeline.Limit{Name: "slow", Concurrency: 2, Requests: 1}, pipeline.Budget{}, func(t *testing.T, h sdk.Host) {
			_, _ = ask(t, h, good)
			_, _ = ask(t, h, good)
		}, []string{
			`5 waiting for sample.llm: 1 call, limit "slow" lets 1 request through in a minute, next try in 55 s`,
			`35 waiting for sample.llm: 1 call, limit "slow" lets 1 request through in a minute, next try in 25 s`,
		}},
		"a limit, among answers": {&pipeline.Limit{Name: "slow", Concurrency: 2, Requests: 30}, pipeline.Budget{}, func(t *testing.T, h sdk.Host) {
			for range 25 {
				_, _ = ask(t, h, good)
			}
		}, nil},
		"no reply": {nil, pipeline.Budget{}, func(t *testing.T, h sdk.Host) { hang(t, h, 70*time.Second, good) }, []string{
			"30 waiting for sample.llm: 1 call, no reply from http://api/v1 for 30s",
			"60 waiting for sample.llm: 1 call, no reply from http://api/v1 for 1m0s",
		}},
		"a trial without a reply": {nil, pipeline.Budget{}, func(t *testing.T, h sdk.Host) {
			for range downInARow {
				_, _ = ask(t, h, sdk.Result{Status: sdk.StatusDown, Reason: "500"})
				time.Sleep(2 * time.Second)
			}
			hang(t, h, 30*time.Second, good)
		}, []string{
			"5 waiting for sample.llm: 500 (http://api/v1), it is being tried again",
			"35 waiting for sample.llm: 1 call, 500 (http://api/v1), it is being tried again",
		}},
		"no room in the budget": {nil, pipeline.Budget{Tokens: 15}, func(t *testing.T, h sdk.Host) {
			go hang(t, h, 40*time.Second, sdk.Result{Status: sdk.StatusRefused})
			synctest.Wait()
			hang(t, h, 0, good)
		}, []string{"30 waiting for sample.llm: 1 call, the budget has no room until calls under way have ended"}},
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			start, got := time.Now(), []string(nil)
			reporter := progress.NewWaitReporter(func(w progress.LongWait) { got = append(got, fmt.Sprintf("%d %s", time.Since(start)/time.Second, w)) })
			defer reporter.Close()
			c, _ := newControl(Options{Waiting: reporter, Budget: test.budget})
			reporter.Watch(c.Waits)
			test.do(t, c.Stage(Stage{Name: "sample.llm", Required: true, Limit: test.limit}))
			time.Sleep(time.Hour) // nobody waits
			must.Equal(t, "reported", test.want, got)
		})
	}
}

// TestImplausibleUsage: an impossible usage is not counted and overflows no sum. The call counts
// with its reservation.
func TestImplausibleUsage(t *testing.T) {
	for _, absurd := range []uint64{math.MaxInt64, math.MaxUint64, 1 << 40} {
		c, log := newControl(Options{Budget: pipeline.Budget{Tokens: 400}})
		h := c.Stage(Stage{Name: "sample.llm", Price: &pipeline.Price{Input: 1, Output: 1}})
		for range 2 {
			release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1", Tokens: 10, Most: sdk.Usage{InputTokens: 100, OutputTokens: 50}})
			must.Do(t, err)
			release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 5, OutputTokens: absurd}})
		}
		if got := c.Snapshot().Total; got != (Counts{Calls: 2}) {
			t.Errorf("%d: counted %+v", absurd, got)
		}
		_, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1", Most: sdk.Usage{InputTokens: 101}})
		if sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), "300 in 2 calls") {
			t.Errorf("%d: error %v", absurd, err)
		}
		if n := strings.Count(log.String(), fmt.Sprintf("endpoint=http://api/v1 input_tokens=5 cached_tokens=0 output_tokens=%d", absurd)); n != 1 {
			t.Errorf("%d: reported %d times:\n%s", absurd, n, log)
		}
	}
	s := Counts{InputTokens: math.MaxUint64 - 1}
	if s.add(Counts{InputTokens: 5}); s.InputTokens != math.MaxUint64 {
		t.Errorf("the sum is %d", s.InputTokens)
	}
}

// TestBound: a budget reserves the maximum cost of a call, and logs once if the maximum is unknown.
func TestBound(t *testing.T) {
	price := &pipeline.Price{Input: 1e6, Cached: 1e6, Output: 2e6} // 1 and 2 a token
	for name, test := range map[string]struct {
		call  sdk.Call
		lost  bool
		want  string // of the second call
		times int    // number of reports
	}{
		"known":            {sdk.Call{Tokens: 1, Most: sdk.Usage{InputTokens: 10, OutputTokens: 5}}, false, "0.00 in 0 calls, and the next may take 20.00", 0},
		"known, lost":      {sdk.Call{Tokens: 1, Most: sdk.Usage{InputTokens: 10, OutputTokens: 2}}, true, "14.00 in 1 calls, and the next may take 14.00", 0},
		"not known":        {sdk.Call{Tokens: 10}, false, "0.00 in 0 calls, and the next may take 20.00", 1},
		"more than can be": {sdk.Call{Tokens: 10, Most: sdk.Usage{InputTokens: 1 << 60}}, false, "0.00 in 0 calls, and the next may take 20.00", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, log := newControl(Options{Budget: pipeline.Budget{Cost: 19}})
			h := c.Stage(Stage{Name: "sample.llm", Price: price})
			var err error
			for range 2 {
				var release func(sdk.Result)
				if release, err = h.Acquire(t.Context(), test.call); err != nil {
					break
				}
				release(sdk.Result{Status: sdk.StatusDown, Lost: test.lost})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if n := strings.Count(log.String(), "no call says what it takes at most"); n != test.times {
				t.Errorf("reported %d times:\n%s", n, log)
			}
		})
	}
}
