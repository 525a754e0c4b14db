package governor

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// TestBudget spends random budgets: never more than the budget, and at most the cost of one call
// less.
func TestBudget(t *testing.T) {
	price := &pipeline.Price{Input: 2, Cached: 0.5, Output: 8}
	const most = 2000 // tokens per call
	for seed := range uint64(20) {
		bubble(t, fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			b := pipeline.Budget{Cost: 0.1 + r.Float64()}
			if seed%2 == 1 {
				b = pipeline.Budget{Tokens: 10000 + r.Int64N(100000)}
			}
			c, _ := newControl(Options{Budget: b})
			var all sync.WaitGroup
			stopped := 0
			var mu sync.Mutex
			for stage := range 2 {
				h := c.Stage(Stage{Name: fmt.Sprint("sample.", stage), Price: price})
				for range 400 {
					latency := time.Duration(r.Int64N(int64(time.Second)))
					estimate := 1 + r.IntN(most)
					in := r.IntN(estimate)
					usage := sdk.Usage{InputTokens: uint64(in), CachedTokens: uint64(r.IntN(in + 1)), OutputTokens: uint64(estimate - in)}
					all.Go(func() {
						release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: estimate})
						if err == nil {
							time.Sleep(latency)
							release(sdk.Result{Status: sdk.StatusOK, Usage: usage})
							return
						}
						mu.Lock()
						defer mu.Unlock()
						if stopped++; sdk.CodeOf(err) != sdk.CodeStopped || err.Error() != c.spent.Error() {
							t.Errorf("got %v, the budget says %v", err, c.spent)
						}
					})
				}
			}
			all.Wait()
			got := c.Snapshot().Total
			tokens := int64(got.InputTokens + got.OutputTokens)
			if b.Cost > 0 && (got.Cost > b.Cost || got.Cost < b.Cost-most*price.Output/1e6) {
				t.Errorf("%f was spent of %f", got.Cost, b.Cost)
			}
			if b.Tokens > 0 && (tokens > b.Tokens || tokens < b.Tokens-most) {
				t.Errorf("%d tokens were spent of %d", tokens, b.Tokens)
			}
			if stopped+got.Calls != 800 || stopped == 0 {
				t.Errorf("%d calls were sent, %d were not", got.Calls, stopped)
			}
		})
	}
}

func TestMoney(t *testing.T) {
	for amount, want := range map[float64]string{
		0: "0.00", 0.00001: "0.00001", 0.0000123: "0.000012", 1.96e-7: "0.0000002", 0.0003: "0.0003", 0.00996: "0.0100", 0.5: "0.5000", 1: "1.00", 20.004: "20.00",
	} {
		if got := Money(amount); got != want {
			t.Errorf("%g is shown as %s, want %s", amount, got, want)
		}
	}
}

// A batch reserves and costs half the price, or the batch share of the price, and does not count as
// a call of its limit.
func TestBatch(t *testing.T) {
	for share, want := range map[float64]float64{0: 5, 0.2: 2} {
		synctest.Test(t, func(t *testing.T) {
			price := &pipeline.Price{Input: 1e6, Cached: 1e6, Output: 1e6, Batch: share}
			limit := &pipeline.Limit{Name: "api", Concurrency: 1, Requests: 1, Tokens: 10}
			c, _ := newControl(Options{Budget: pipeline.Budget{Cost: 10}})
			h := c.Stage(Stage{Name: "sample.llm", Price: price, Limit: limit})
			batch := sdk.Call{Endpoint: "api", Tokens: 10, Most: sdk.Usage{InputTokens: 5, OutputTokens: 5}, Batch: true}
			start := time.Now()
			var releases []func(sdk.Result)
			for range int(10 / want) {
				release, err := h.Acquire(t.Context(), batch)
				if err != nil || time.Since(start) > 0 {
					t.Fatalf("after %v: %v", time.Since(start), err)
				}
				releases = append(releases, release)
			}
			go func() {
				time.Sleep(time.Hour)
				for _, release := range releases[1:] {
					release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 1}})
				}
				releases[0](sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 5, OutputTokens: 5}})
			}()
			release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "api", Tokens: 1, Most: sdk.Usage{InputTokens: 1}})
			if err != nil || time.Since(start) != time.Hour { // until then the whole budget is reserved
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
			release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 1}})
			synctest.Wait()
			left := float64(len(releases)-1) * want / 10
			if got := c.Snapshot().Total.Cost; got != want+left+1 {
				t.Errorf("it cost %v, want %v", got, want+left+1)
			}
		})
	}
}
