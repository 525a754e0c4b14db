package lease

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/sdk"
)

// crew are governors that share accounts, in a time of their own: the holders' loop without servers.
type crew struct {
	t         *testing.T
	mu        sync.Mutex
	accounts  *accounts
	limit     *pipeline.Limit
	governors []*governor.Governor
	end       context.CancelFunc
	all       sync.WaitGroup
}

func newCrew(t *testing.T, n int, limits Limits) *crew {
	c := &crew{t: t, accounts: newBook("keeper", limits, usual())}
	for _, l := range limits.Blocks {
		c.limit = &pipeline.Limit{Name: l.Name, Concurrency: l.Concurrency, Requests: l.Requests, Tokens: l.Tokens}
	}
	ctx, end := context.WithCancel(t.Context())
	c.end = end
	for range n {
		g := governor.New(ctx, governor.Options{Log: slog.New(slog.DiscardHandler)})
		g.Together(pipeline.Budget(limits.Budget))
		c.governors = append(c.governors, g)
	}
	for i, g := range c.governors {
		c.all.Go(func() { c.hold(ctx, fmt.Sprint("worker", i), g) })
		c.all.Go(func() {
			for {
				select {
				case e := <-g.Learnt():
					time.Sleep(time.Millisecond)
					for _, o := range c.governors {
						if o != g {
							o.Hear(e)
						}
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return c
}

func (c *crew) hold(ctx context.Context, name string, g *governor.Governor) {
	for acked := uint64(0); ; {
		asked := time.Now()
		d := g.Demand(acked)
		time.Sleep(time.Millisecond)
		c.mu.Lock()
		a, _ := c.accounts.report(time.Now(), report{Holder: name, Demand: d})
		c.mu.Unlock()
		time.Sleep(time.Millisecond)
		acked = d.Number
		g.Grant(governor.Grant{Until: asked.Add(a.Lease), Limiters: a.Limiters, Budget: a.Budget, Spent: a.Spent, Trials: a.Trials})
		time.Sleep(20 * time.Millisecond)
		select {
		case <-time.After(180 * time.Millisecond):
		case <-g.Wants():
		case <-ctx.Done():
			return
		}
	}
}

func (c *crew) close() {
	c.end()
	c.all.Wait()
}

func (c *crew) stage(g *governor.Governor) sdk.Host {
	return g.Stage(governor.Stage{Name: "sample.llm", Limit: c.limit, Required: true})
}

// TestGovernors keeps 64 calls in flight over four governors.
func TestGovernors(t *testing.T) {
	for name, test := range map[string]struct {
		limit Limit
		calls int
		ideal time.Duration
	}{
		"concurrency": {Limit{Concurrency: 64}, 8000, 75 * time.Second},
		"few":         {Limit{Concurrency: 2}, 200, 60 * time.Second},
		"requests":    {Limit{Concurrency: 64, Requests: 600}, 6000, 10*time.Minute - 10*time.Second},
		"tokens":      {Limit{Concurrency: 64, Tokens: 100000}, 2000, 10*time.Minute - 10*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, 4, Limits{Blocks: api(test.limit)})
				defer c.close()
				var mu sync.Mutex
				underWay, most, begun := 0, 0, 0
				began := time.Now()
				var all sync.WaitGroup
				for _, g := range c.governors {
					h := c.stage(g)
					for range 64 {
						all.Go(func() {
							for {
								mu.Lock()
								begun++
								enough := begun > test.calls
								mu.Unlock()
								if enough {
									return
								}
								release, err := h.Acquire(t.Context(), sdk.Call{Endpoint: "http://service", Tokens: 1000})
								if err != nil {
									t.Error(err)
									return
								}
								mu.Lock()
								underWay++
								most = max(most, underWay)
								mu.Unlock()
								time.Sleep(600 * time.Millisecond)
								mu.Lock()
								underWay--
								mu.Unlock()
								release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 400, OutputTokens: 100}})
							}
						})
					}
				}
				all.Wait()
				share := test.ideal.Seconds() / time.Since(began).Seconds()
				t.Logf("%.3f of the ideal rate, at most %d at a time", share, most)
				if share < 0.9 || most > test.limit.Concurrency {
					t.Errorf("%.3f of the ideal rate, %d calls at a time", share, most)
				}
			})
		})
	}
}

// ask makes calls one after the other that end so, until one is refused.
func (c *crew) ask(h sdk.Host, result func() sdk.Result) error {
	for {
		release, err := h.Acquire(c.t.Context(), sdk.Call{Endpoint: "http://service"})
		if err != nil {
			return err
		}
		r := result()
		release(r)
		if r.Status == sdk.StatusOK {
			time.Sleep(time.Second)
		}
	}
}

// TestOneTries: of the governors whose service is down, one at a time tries whether it is back.
func TestOneTries(t *testing.T) {
	for name, outage := range map[string]time.Duration{"short": time.Minute, "long": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, 4, Limits{Blocks: api(Limit{Concurrency: 8})})
				defer c.close()
				began := time.Now()
				var mu sync.Mutex
				var calls []time.Duration // of those that failed
				served := 0
				errs := make([]error, len(c.governors))
				var all sync.WaitGroup
				for i, g := range c.governors {
					h := c.stage(g)
					all.Go(func() {
						errs[i] = c.ask(h, func() sdk.Result {
							at := time.Since(began)
							time.Sleep(10 * time.Millisecond)
							mu.Lock()
							defer mu.Unlock()
							if at < 10*time.Second || at > 10*time.Second+outage {
								served++
								return sdk.Result{Status: sdk.StatusOK}
							}
							calls = append(calls, at)
							return sdk.Result{Status: sdk.StatusDown, Reason: "connection refused"}
						})
					})
				}
				time.Sleep(10*time.Second + 4*time.Minute)
				mu.Lock()
				trials := 0
				for i := 1; i < len(calls); i++ {
					if calls[i] > 20*time.Second {
						if trials++; calls[i]-calls[i-1] < 5*time.Second && calls[i-1] > 20*time.Second {
							t.Errorf("trials after %s and %s", calls[i-1], calls[i])
						}
					}
				}
				t.Logf("%d calls failed, %d of them trials; %d were served", len(calls), trials, served)
				if outage == time.Minute && served < 4*100 {
					t.Errorf("%d calls were served: not all went on", served)
				}
				mu.Unlock()
				if outage == time.Hour {
					all.Wait()
					for _, err := range errs {
						if sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), "http://service has been down for 2m") {
							t.Errorf("error %v", err)
						}
					}
				}
				if trials < 2 || trials > 6 {
					t.Errorf("%d trials", trials)
				}
				c.end() // refuses the rest
				c.governors[0].Grant(governor.Grant{})
				for _, g := range c.governors {
					g.Hear(governor.Event{Endpoint: "other", Trying: true}) // so that it looks
				}
				all.Wait()
			})
		})
	}
}
