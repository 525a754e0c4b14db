package governor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// newControl makes a Control with a log that a test can read after it.
func newControl(o Options) (*Governor, *bytes.Buffer) {
	log := &bytes.Buffer{}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	return New(context.Background(), o), log
}

// service counts its calls as a server with limits does.
type service struct {
	t       *testing.T
	limit   pipeline.Limit
	mu      sync.Mutex
	current int
	calls   []*arrival
}

type arrival struct {
	at, ended time.Time // ended: zero while it is in flight
	estimate  int
	took      int
}

// arrive checks the limits, and returns a function to call when the call has ended.
func (s *service) arrive(estimate, took int) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	a := &arrival{at: now, estimate: estimate, took: took}
	s.calls = append(s.calls, a)
	if s.current++; s.current > s.limit.Concurrency {
		s.t.Errorf("%d calls are in flight, %d may", s.current, s.limit.Concurrency)
	}
	calls, tokens := 0, 0
	for i := len(s.calls) - 1; i >= 0 && now.Sub(s.calls[i].at) <= time.Minute; i-- {
		c := s.calls[i]
		calls++
		if c.ended.IsZero() || c.ended.After(now) {
			tokens += c.estimate
		} else {
			tokens += c.took
		}
	}
	if s.limit.Requests > 0 && calls > s.limit.Requests {
		s.t.Errorf("%d calls within a minute, %d may be", calls, s.limit.Requests)
	}
	if s.limit.Tokens > 0 && tokens > s.limit.Tokens && calls > 1 {
		s.t.Errorf("%d tokens within a minute, %d may be", tokens, s.limit.Tokens)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		a.ended = time.Now()
		s.current--
	}
}

// TestLimits sends calls of random sizes at random times through random limits, from several stages
// at once.
func TestLimits(t *testing.T) {
	for seed := range uint64(30) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			limit := pipeline.Limit{Name: "api", Concurrency: 1 + r.IntN(12)}
			if r.IntN(4) > 0 {
				limit.Requests = 1 + r.IntN(200)
			}
			if r.IntN(4) > 0 {
				limit.Tokens = 1000 + r.IntN(50000)
			}
			s := &service{t: t, limit: limit}
			c, _ := newControl(Options{})
			var all sync.WaitGroup
			sent := 0
			for stage := range 3 {
				h := c.Stage(Stage{Name: fmt.Sprint("sample.", stage), Limit: &limit})
				for range 100 {
					sent++
					pause, latency := time.Duration(r.Int64N(int64(3*time.Minute))), time.Duration(r.Int64N(int64(20*time.Second)))
					estimate := r.IntN(2000)
					took := r.IntN(estimate + 1)
					all.Go(func() {
						time.Sleep(pause)
						release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: estimate})
						if err != nil {
							t.Error(err)
							return
						}
						end := s.arrive(estimate, took)
						time.Sleep(latency)
						end()
						release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: uint64(took)}})
					})
				}
			}
			all.Wait()
			if got := c.Snapshot().Total; got.Calls != sent || got.InFlight != 0 {
				t.Errorf("%d calls were sent: %+v", sent, got)
			}
		})
	}
}

// TestRate keeps 64 calls in flight, and compares the duration with the limit.
func TestRate(t *testing.T) {
	for name, test := range map[string]struct {
		limit   pipeline.Limit
		latency time.Duration
		calls   int
		ideal   time.Duration // for all calls except the initial burst
	}{
		"concurrency": {pipeline.Limit{Name: "api", Concurrency: 64}, 600 * time.Millisecond, 2000, 2000 * 600 * time.Millisecond / 64},
		"requests":    {pipeline.Limit{Name: "api", Concurrency: 64, Requests: 600}, 600 * time.Millisecond, 12000, 20 * time.Minute},
		"few":         {pipeline.Limit{Name: "api", Concurrency: 64, Requests: 7}, 600 * time.Millisecond, 700, 100 * time.Minute},
		"slow":        {pipeline.Limit{Name: "api", Concurrency: 64, Requests: 150}, 20 * time.Second, 3000, 20 * time.Minute},
		"tokens":      {pipeline.Limit{Name: "api", Concurrency: 64, Tokens: 100000}, 600 * time.Millisecond, 4000, 20 * time.Minute}, // 500 each, of 1,000
		"both":        {pipeline.Limit{Name: "api", Concurrency: 64, Requests: 400, Tokens: 100000}, 600 * time.Millisecond, 4000, 20 * time.Minute},
		// Five calls of 500 tokens leave no room for a call that may take 1,000.
		"large": {pipeline.Limit{Name: "api", Concurrency: 64, Tokens: 3200}, 600 * time.Millisecond, 125, 25 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			s := &service{t: t, limit: test.limit}
			c, _ := newControl(Options{})
			h := c.Stage(Stage{Name: "sample.llm", Limit: &test.limit})
			begin := time.Now()
			var all sync.WaitGroup
			slots := make(chan struct{}, 64)
			for range test.calls {
				slots <- struct{}{}
				all.Go(func() {
					defer func() { <-slots }()
					release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: 1000})
					if err != nil {
						t.Error(err)
						return
					}
					end := s.arrive(1000, 500)
					time.Sleep(test.latency)
					end()
					release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 400, OutputTokens: 100}})
				})
			}
			all.Wait()
			share := test.ideal.Seconds() / time.Since(begin).Seconds()
			t.Logf("%.3f of the ideal rate", share)
			if share < 0.97 {
				t.Errorf("it took %s: %.3f of the ideal rate", time.Since(begin), share)
			}
		})
	}
}

// A correction of a use has no effect after the use has left the window.
func TestLateCorrection(t *testing.T) {
	start := time.Now()
	r := newRate(600, start)
	u := r.record(start, 100)
	later := start.Add(window)
	r.advance(later)
	r.correct(u, 600)
	if wait := r.wait(later, 100); r.sum != 0 || wait != 0 {
		t.Errorf("%g are counted in a window in which nothing was used, and the next 100 wait %s", r.sum, wait)
	}
}

// A call that is cancelled at the moment of its admission was not sent.
func TestGivenUpWhenAdmitted(t *testing.T) {
	c, _ := newControl(Options{})
	h := c.Stage(Stage{Name: "sample.llm", Limit: &pipeline.Limit{Name: "api", Concurrency: 1, Requests: 60, Tokens: 6000}}).(*host)
	c.mu.Lock()
	w := c.enqueue(h, sdk.Call{Endpoint: "api", Tokens: 600})
	c.mu.Unlock()
	if w.limiter.requests.sum != 1 || w.limiter.tokens.sum != 600 || w.limiter.inFlight != 1 {
		t.Fatalf("it was not admitted: %+v", w.limiter)
	}
	c.withdraw(w)
	if w.limiter.requests.sum != 0 || w.limiter.tokens.sum != 0 || w.limiter.inFlight != 0 || c.inFlight != 0 {
		t.Errorf("%g requests, %g tokens and %d calls in flight are counted", w.limiter.requests.sum, w.limiter.tokens.sum, w.limiter.inFlight)
	}
}

// TestNobodyStarves: a stage that comes later gets its turn.
func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		limit := &pipeline.Limit{Name: "api", Concurrency: 1, Tokens: 6000}
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		send := func(stage string, n, tokens int) {
			h := c.Stage(Stage{Name: stage, Limit: limit})
			for i := range n {
				all.Go(func() {
					release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: tokens})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					order = append(order, fmt.Sprint(stage, i))
					mu.Unlock()
					time.Sleep(time.Second)
					release(sdk.Result{Status: sdk.StatusOK})
				})
				synctest.Wait()
			}
		}
		send("a", 6, 10)
		send("large", 1, 9000) // more than the limit
		send("b", 2, 10)
		all.Wait()
		must.Equal(t, "order", []string{"a0", "a1", "large0", "b0", "a2", "b1", "a3", "a4", "a5"}, order)
	})
}

// TestImplicitLimit: stages without a limit block share one limit per endpoint.
func TestImplicitLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		admitted := map[string]int{}
		var mu sync.Mutex
		ctx, cancel := context.WithCancel(t.Context())
		for _, stage := range []string{"sample.a", "sample.b"} {
			h := c.Stage(Stage{Name: stage})
			for i := range 40 {
				go func() {
					endpoint := []string{"one", "two"}[i%2]
					if _, err := h.Acquire(ctx, sdk.Call{Endpoint: endpoint}); err == nil {
						mu.Lock()
						admitted[endpoint]++
						mu.Unlock()
					}
				}()
			}
		}
		synctest.Wait()
		must.Equal(t, "in flight", map[string]int{"one": 8, "two": 8}, admitted)
		cancel()
	})
}

// TestWithdraw: withdrawn calls are not counted, and delay no other call.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		limit := &pipeline.Limit{Name: "api", Concurrency: 2, Tokens: 1000}
		h := c.Stage(Stage{Name: "sample.llm", Limit: limit})
		release := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: 900}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		refused, small := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := h.Acquire(ctx, sdk.Call{Endpoint: "api", Tokens: 900})
			refused <- err
		}()
		synctest.Wait()
		go func() {
			release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: 1})
			if err == nil {
				release(sdk.Result{Status: sdk.StatusOK})
			}
			small <- err
		}()
		synctest.Wait()
		begin := time.Now()
		cancel()
		if err := <-refused; !errors.Is(err, context.Canceled) {
			t.Errorf("the call that was withdrawn: %v", err)
		}
		if err := <-small; err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited > 50*time.Second {
			t.Errorf("the call behind it waited %s", waited)
		}
		release(sdk.Result{Status: sdk.StatusOK})
		release(sdk.Result{Status: sdk.StatusDown}) // already released
		if got := c.Snapshot().Total; got.Calls != 2 || got.Failed != 0 || got.InFlight != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// ask sends one call and returns how long it waited.
func ask(t *testing.T, h sdk.Host, o sdk.Result) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"})
	waited := time.Since(begin)
	if err == nil {
		time.Sleep(time.Millisecond)
		release(o)
	}
	return waited, err
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		h := c.Stage(Stage{Name: "sample.llm"})
		other := c.Stage(Stage{Name: "sample.other", Limit: &pipeline.Limit{Name: "other", Concurrency: 1}})
		busy := func(after time.Duration) time.Duration {
			t.Helper()
			return must.Get(ask(t, h, sdk.Result{Status: sdk.StatusBusy, RetryAfter: after}))(t)
		}
		busy(7 * time.Second)
		if waited, err := ask(t, other, sdk.Result{Status: sdk.StatusOK}); waited != 7*time.Second || err != nil {
			t.Errorf("another stage of the same service waited %s, want 7s; %v", waited, err)
		}
		busy(0)
		ceiling := pauses.First
		for range 10 { // each is refused again
			waited := busy(0)
			if waited < ceiling/2 || waited > ceiling {
				t.Errorf("waited %s, want between half of %s and all", waited, ceiling)
			}
			ceiling = min(2*ceiling, pauses.Max)
		}
		for range 20 {
			must.Get(ask(t, h, sdk.Result{Status: sdk.StatusOK}))(t)
		}
		busy(0)
		if waited := busy(0); waited > pauses.First {
			t.Errorf("waited %s after calls that were answered", waited)
		}

		// Refusals of calls that were in flight together count as one refusal.
		for range 20 {
			must.Get(ask(t, h, sdk.Result{Status: sdk.StatusOK}))(t)
		}
		var together []func(sdk.Result)
		for range 8 {
			release := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"}))(t)
			together = append(together, release)
		}
		time.Sleep(time.Second)
		for _, release := range together {
			release(sdk.Result{Status: sdk.StatusBusy})
		}
		if waited := busy(0); waited > pauses.First {
			t.Errorf("waited %s after refusals at a time", waited)
		}

		// No call waits for hours.
		busy(3 * time.Hour)
		_, err := ask(t, h, sdk.Result{})
		if sdk.CodeOf(err) != sdk.CodeUnavailable || !strings.Contains(err.Error(), "wants no calls for another 3h0m0s") {
			t.Errorf("a service that is busy for hours: %v", err)
		}
		time.Sleep(3 * time.Hour)
		if _, err := ask(t, h, sdk.Result{Status: sdk.StatusOK}); err != nil {
			t.Error(err)
		}
	})
}

func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newControl(Options{})
		h := c.Stage(Stage{Name: "sample.llm"})
		tell := func(status sdk.Status, n int) {
			t.Helper()
			for range n {
				must.Get(ask(t, h, sdk.Result{Status: status, Reason: "no such host"}))(t)
			}
		}
		refused := func() {
			t.Helper()
			waited, err := ask(t, h, sdk.Result{Status: sdk.StatusOK})
			if sdk.CodeOf(err) != sdk.CodeUnavailable || waited > 0 || !strings.Contains(err.Error(), "http://api/v1 is down") {
				t.Fatalf("a call to what is down waited %s: %v", waited, err)
			}
		}
		tell(sdk.StatusDown, 1) // it was never answered
		since := time.Now()
		tell(sdk.StatusDown, downInARow-2)
		time.Sleep(downFor)
		tell(sdk.StatusDown, 1)
		refused()
		if _, err := ask(t, h, sdk.Result{}); !strings.Contains(err.Error(), "is down (no such host): it is tried again in 10s") {
			t.Errorf("the cause is not told: %v", err)
		}
		cool, pause := firstCoolDown, firstCoolDown
		for range 7 {
			time.Sleep(pause - 2*time.Millisecond)
			refused()
			time.Sleep(2 * time.Millisecond)
			tell(sdk.StatusDown, 1)
			cool = min(2*cool, maxCoolDown)
			if left := maxWait - time.Since(since); left > 0 { // one more try before anybody gives up
				pause = min(cool, left)
			} else {
				pause = cool
			}
			refused()
		}
		time.Sleep(pause)
		// One trial call is admitted at a time. A call without a result makes room for another.
		release := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"}))(t)
		refused()
		release(sdk.Result{Status: sdk.StatusLeft})
		tell(sdk.StatusOK, 1)
		tell(sdk.StatusDown, downInARow-1)
		tell(sdk.StatusBusy, 1)
		tell(sdk.StatusDown, downInARow-1)
		tell(sdk.StatusOK, 1)
		var together []func(sdk.Result)
		for range downInARow + 2 {
			release := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"}))(t)
			together = append(together, release)
		}
		for _, release := range together { // all at the same moment
			release(sdk.Result{Status: sdk.StatusDown})
		}
		tell(sdk.StatusOK, 1)
		if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "endpoint=http://api/v1") {
			t.Errorf("the log has %d lines, want one when it opens and one when it closes:\n%s", n, log)
		}

		// Calls that wait when the circuit opens fail. An answered call from before closes it.
		limit := &pipeline.Limit{Name: "api", Concurrency: downInARow + 1}
		h = c.Stage(Stage{Name: "sample.llm", Limit: limit})
		var open []func(sdk.Result)
		for range limit.Concurrency {
			release := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"}))(t)
			open = append(open, release)
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"})
			waiting <- err
		}()
		synctest.Wait()
		var late func(sdk.Result)
		open, late = open[1:], open[0]
		for _, release := range open[1:] {
			release(sdk.Result{Status: sdk.StatusDown})
		}
		if err := <-waiting; err != nil {
			t.Fatalf("it was let through before the circuit opened: %v", err)
		}
		time.Sleep(downFor)
		open[0](sdk.Result{Status: sdk.StatusDown})
		refused()
		late(sdk.Result{Status: sdk.StatusOK})
		tell(sdk.StatusOK, 1)
	})
}

// TestAShortOutage: while a service restarts, few calls are lost, and no caller gets an error.
func TestAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		h := c.Stage(Stage{Name: "sample.llm", Limit: &pipeline.Limit{Name: "api", Concurrency: 8}})
		must.Get(ask(t, h, sdk.Result{Status: sdk.StatusOK}))(t)
		back := time.Now().Add(downFor - 2*downPause)
		var all sync.WaitGroup
		var failed atomic.Int64
		for range 100 {
			all.Go(func() {
				for {
					release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://api/v1"})
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					if !time.Now().Before(back) {
						release(sdk.Result{Status: sdk.StatusOK})
						return
					}
					failed.Add(1)
					release(sdk.Result{Status: sdk.StatusDown})
				}
			})
		}
		all.Wait()
		if n := failed.Load(); n < downInARow || n > 100 {
			t.Errorf("%d calls were lost", n)
		}
		if took := time.Since(back); took > 2*downPause {
			t.Errorf("the last call was answered %s after the service was back", took)
		}
	})
}

// TestCircuitRefusesTheWaiting: calls that wait for a dead service fail.
func TestCircuitRefusesTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newControl(Options{})
		h := c.Stage(Stage{Name: "sample.llm", Limit: &pipeline.Limit{Name: "api", Concurrency: 3}})
		unavailable := make(chan bool, 100)
		for range 100 {
			go func() {
				release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api"})
				if err == nil {
					time.Sleep(time.Second)
					release(sdk.Result{Status: sdk.StatusDown})
				}
				unavailable <- sdk.CodeOf(err) == sdk.CodeUnavailable
			}()
		}
		begin, n := time.Now(), 0
		for range 100 {
			if <-unavailable {
				n++
			}
		}
		if n < 100-8*3 || time.Since(begin) > downFor+4*time.Second {
			t.Errorf("%d of 100 calls failed at once, the last after %s", n, time.Since(begin))
		}
	})
}

// A call that is cancelled because the run ends makes no room for another call.
func TestNothingIsAdmittedAfterTheEnd(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	c := New(ctx, Options{Log: slog.New(slog.DiscardHandler)})
	h := c.Stage(Stage{Name: "sample.llm", Limit: &pipeline.Limit{Concurrency: 1}})
	release := must.Get(h.Acquire(t.Context(), sdk.Call{Endpoint: "api"}))(t)
	waiting := make(chan error)
	go func() {
		_, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api"})
		waiting <- err
	}()
	for queued := false; !queued; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		queued = c.limiters[0].queues[0].first() != nil
		c.mu.Unlock()
	}
	end()
	release(sdk.Result{Status: sdk.StatusLeft})
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// bubble is a subtest with its own simulated time.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	control := func(mode Mode) *Governor {
		kept := must.Get(cache.Open(dir, slog.New(slog.DiscardHandler)))(t)
		t.Cleanup(func() {
			if err := kept.Close(); err != nil {
				t.Error(err)
			}
		})
		c, _ := newControl(Options{Cache: kept, Mode: mode})
		return c
	}
	key := sdk.KeyOf("what", "is", "asked")
	recall := func(h sdk.Host, want []byte) {
		t.Helper()
		must.Equal(t, "recalled", [][]byte{nil, want}, must.Get(h.CacheGet(t.Context(), []sdk.Key{sdk.KeyOf("else"), key}))(t))
	}
	keep := func(h sdk.Host, value string) {
		t.Helper()
		must.Do(t, h.CachePut(t.Context(), key, []byte(value)))
	}
	openai := Stage{Name: "sample.llm", Kind: sdk.KindSample, Use: "openai"}

	c, beside := control(Normal), control(Normal)
	h := c.Stage(openai)
	recall(h, nil)
	keep(h, "1")
	recall(h, []byte("1"))
	keep(beside.Stage(openai), "of a run that asked at the same time")
	recall(beside.Stage(openai), []byte("1"))
	recall(c.Stage(Stage{Name: "sample.other", Kind: sdk.KindSample, Use: "openai"}), []byte("1"))
	recall(c.Stage(Stage{Name: "sample.third", Kind: sdk.KindSample, Use: "acme/openai"}), nil)
	recall(c.Stage(Stage{Name: "embed.k", Kind: sdk.KindEmbed, Use: "openai"}), nil)
	must.Equal(t, "counts", Counts{CacheHits: 2, CachePuts: 1}, c.Snapshot().Total)

	refresh := control(Refresh).Stage(openai)
	recall(refresh, nil)
	keep(refresh, "2")
	recall(refresh, []byte("2"))

	offline := control(Offline).Stage(openai)
	recall(offline, []byte("2"))
	_, err := offline.Acquire(t.Context(), sdk.Call{Endpoint: "api"})
	if sdk.CodeOf(err) != sdk.CodeUnavailable || !strings.Contains(err.Error(), "not in the cache and the run is offline") {
		t.Errorf("a call of a run that is offline: %v", err)
	}
	enricher := control(Offline).Stage(Stage{Name: "enrich.k", Kind: sdk.KindEnrich, Use: "context"})
	if _, err := enricher.Acquire(t.Context(), sdk.Call{Endpoint: "api"}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a passage of a build that is offline: %v", err)
	}

	nothing, _ := newControl(Options{})
	h = nothing.Stage(openai)
	keep(h, "3")
	recall(h, nil)
	if s, err := cache.ReadStats(dir); err != nil || len(s.About) != 1 || s.About[0].About != "sample.openai" {
		t.Errorf("in the cache: %+v, %v", s, err)
	}
}

func TestCounts(t *testing.T) {
	c, _ := newControl(Options{})
	price := &pipeline.Price{Input: 3, Cached: 1, Output: 10}
	for _, call := range []struct {
		stage   Stage
		outcome sdk.Result
	}{
		{Stage{Name: "sample.b", Price: price}, sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 1000, CachedTokens: 600, OutputTokens: 50}}},
		{Stage{Name: "sample.b", Price: price}, sdk.Result{Status: sdk.StatusBusy, RetryAfter: time.Nanosecond}},
		{Stage{Name: "embed.a"}, sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 7}}},
		{Stage{Name: "embed.a", Price: price}, sdk.Result{Status: sdk.StatusDown}},
	} {
		release := must.Get(c.Stage(call.stage).Acquire(t.Context(), sdk.Call{Endpoint: "api"}))(t)
		release(call.outcome)
	}
	const cost = (400*3 + 600*1 + 50*10) / 1e6
	want := Snapshot{
		Stages: []StageCounts{
			{"embed.a", Counts{Calls: 2, Failed: 1, InputTokens: 7}},
			{"sample.b", Counts{Calls: 2, Failed: 1, InputTokens: 1000, CachedTokens: 600, OutputTokens: 50, Cost: cost}},
		},
		Total: Counts{Calls: 4, Failed: 2, InputTokens: 1007, CachedTokens: 600, OutputTokens: 50, Cost: cost},
	}
	must.Equal(t, "counts", want, c.Snapshot())
	before := c.Snapshot()
	release := must.Get(c.Stage(Stage{Name: "embed.a"}).Acquire(t.Context(), sdk.Call{Endpoint: "api"}))(t)
	release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 5, OutputTokens: 1}})
	want = Snapshot{
		Stages: []StageCounts{{"embed.a", Counts{Calls: 1, InputTokens: 5, OutputTokens: 1}}, {"sample.b", Counts{}}},
		Total:  Counts{Calls: 1, InputTokens: 5, OutputTokens: 1},
	}
	must.Equal(t, "since then", want, c.Snapshot().Since(before))
	must.Equal(t, "a snapshot has changed", before.Stages[0].Counts, Counts{Calls: 2, Failed: 1, InputTokens: 7})
}
