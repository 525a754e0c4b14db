package lease

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk"
)

// TestSpentIsKnown: a budget is spent but for less than the largest call may take, and then all know.
func TestSpentIsKnown(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			most := 10 + r.Float64()*2500
			limits := Limits{Blocks: []pipeline.Limit{{Name: "api", Concurrency: 1 + r.IntN(40)}}, Budget: Amount{Tokens: 3000 + r.Int64N(100000)}}
			limits.Spent.Tokens = r.Int64N(2000)
			w := newWorld(t, seed, limits)
			w.loss = []float64{0, 0.05}[r.IntN(2)]
			w.keep()
			for range 1 + r.IntN(5) {
				w.add(1+r.IntN(30), w.between(20*time.Millisecond, 3*time.Second), func() float64 { return float64(1 + int(w.r.Float64()*most)) })
			}
			w.jobs.Wait()
			for i, m := range w.workers {
				if m.refused == nil || !strings.HasPrefix(m.refused.Error(), "the budget of") {
					t.Errorf("seed %d: worker %d was refused with %v", seed, i, m.refused)
				}
			}
			if left := limits.Budget.Tokens - limits.Spent.Tokens - w.spent; left < 0 || w.loss == 0 && float64(left) > most {
				t.Errorf("seed %d: %d of %d are left, and a call takes %g at most", seed, left, limits.Budget.Tokens, most)
			}
			w.finish()
		})
	}
}

// TestOneTries: of the workers whose service is down, one at a time tries whether it is back.
func TestOneTries(t *testing.T) {
	for name, outage := range map[string]time.Duration{"short": time.Minute, "long": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, Limits{Blocks: []pipeline.Limit{{Name: "api", Concurrency: 8}}})
				w.keep()
				began := time.Now()
				var failed []time.Duration
				served := 0
				errs := make([]error, 4)
				for i := range errs {
					m := w.add(0, 0, nil)
					h := m.g.Stage(governor.Stage{Name: "sample.llm", Required: true})
					w.jobs.Go(func() {
						for {
							release, err := h.Acquire(w.ctx, sdk.Call{Endpoint: "http://service"})
							if err != nil {
								errs[i] = err
								return
							}
							at := time.Since(began)
							time.Sleep(10 * time.Millisecond)
							w.mu.Lock()
							down := at >= 10*time.Second && at < 10*time.Second+outage
							if down {
								failed = append(failed, at)
							} else {
								served++
							}
							w.mu.Unlock()
							if down {
								release(sdk.Result{Status: sdk.StatusDown, Reason: "connection refused"})
								continue
							}
							release(sdk.Result{Status: sdk.StatusOK})
							time.Sleep(time.Second)
						}
					})
				}
				time.Sleep(10*time.Second + 4*time.Minute)
				w.mu.Lock()
				trials := 0
				for i := 1; i < len(failed); i++ {
					if failed[i] > 20*time.Second {
						if trials++; failed[i]-failed[i-1] < 5*time.Second && failed[i-1] > 20*time.Second {
							t.Errorf("trials after %s and %s", failed[i-1], failed[i])
						}
					}
				}
				t.Logf("%d calls failed, %d of them trials; %d were served", len(failed), trials, served)
				if trials < 2 || trials > 6 {
					t.Errorf("%d trials", trials)
				}
				if outage == time.Minute && served < 4*100 {
					t.Errorf("%d calls were served: not all went on", served)
				}
				w.mu.Unlock()
				if outage == time.Hour {
					w.jobs.Wait()
					for _, err := range errs {
						if sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), "http://service has been down for 2m") {
							t.Errorf("error %v", err)
						}
					}
				}
				w.finish()
			})
		})
	}
}
