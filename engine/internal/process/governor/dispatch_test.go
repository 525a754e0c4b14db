package governor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// lent is a Governor whose limits are granted from outside, with calls that wait.
type lent struct {
	t        *testing.T
	g        *Governor
	h        sdk.Host
	admitted []func(sdk.Result)
	refused  []error
}

var shared = &pipeline.Limit{Name: "api", Concurrency: 8, Requests: 600, Tokens: 6000}

func newLent(t *testing.T, b pipeline.Budget) *lent {
	g, _ := newControl(Options{})
	g.Together(b)
	l := &lent{t: t, g: g, h: g.Stage(Stage{Name: "sample.llm", Limit: shared, Required: true})}
	g.limiterOf(l.h.(*host), "") // as if there had been a call
	return l
}

// call makes calls that need so many tokens.
func (l *lent) call(n, tokens int) {
	for range n {
		go func() {
			release, err := l.h.Acquire(l.t.Context(), sdk.Call{Endpoint: "http://api", Tokens: tokens})
			l.g.mu.Lock()
			defer l.g.mu.Unlock()
			if err != nil {
				l.refused = append(l.refused, err)
			} else {
				l.admitted = append(l.admitted, release)
			}
		}()
	}
	synctest.Wait()
}

// grant grants for ten seconds; what is not 0.
func (l *lent) grant(share int, requests, tokens float64, budget int64) {
	l.g.Grant(Grant{Until: time.Now().Add(10 * time.Second), Limiters: []Given{{Block: "api", Share: share, Requests: requests, Tokens: tokens}}, Budget: Amount{Tokens: budget}})
	synctest.Wait()
}

func (l *lent) has(admitted, waiting int) {
	l.t.Helper()
	if n := l.g.Demand(0).Limiters[0]; len(l.admitted) != admitted || n.Waiting != waiting || len(l.refused) > 0 {
		l.t.Errorf("%d calls are admitted, %d wait, refused: %v; want %d and %d", len(l.admitted), n.Waiting, l.refused, admitted, waiting)
	}
}

func (l *lent) wanted() bool {
	select {
	case <-l.g.Wants():
		return true
	default:
		return false
	}
}

func (l *lent) end(i, tokens int) {
	l.admitted[i](sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: uint64(tokens)}})
	synctest.Wait()
}

func TestGrants(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, l *lent){
		"nothing is admitted before": func(_ *testing.T, l *lent) {
			l.call(3, 10)
			l.has(0, 3)
			l.grant(2, 99, 999, 0)
			l.has(2, 1)
			l.end(0, 10)
			l.has(3, 0)
		},
		"a share that is over": func(t *testing.T, l *lent) {
			l.grant(5, 99, 999, 0)
			l.call(2, 10)
			time.Sleep(10 * time.Second)
			l.call(2, 10)
			l.has(2, 2)
			if n := l.g.Demand(0).Limiters[0]; n.Share != 0 || n.InFlight != 2 || n.Requests.Most != 2 || n.Tokens.Most != 20 {
				t.Errorf("it says that it has %+v", n)
			}
			l.grant(3, 99, 999, 0)
			l.has(3, 1)
		},
		"a smaller share": func(t *testing.T, l *lent) {
			l.grant(3, 99, 999, 0)
			l.call(4, 10)
			l.has(3, 1)
			l.wanted()
			l.grant(1, 99, 999, 0)
			l.end(0, 10)
			l.has(3, 1)
			if l.wanted() {
				t.Error("it has more under way than its share, and says that it has given it back")
			}
			l.end(1, 10)
			l.has(3, 1)
			if !l.wanted() {
				t.Error("it does not say that it has given the share back")
			}
			l.end(2, 10)
			l.has(4, 0)
		},
		"requests": func(_ *testing.T, l *lent) {
			l.grant(8, 2, 999, 0)
			l.call(3, 10)
			l.has(2, 1)
			l.end(0, 10)
			l.has(2, 1)
			l.grant(8, 3, 999, 0)
			l.has(3, 0)
		},
		"tokens, as they turn out": func(t *testing.T, l *lent) {
			l.grant(8, 99, 250, 0)
			l.call(3, 100)
			l.has(2, 1)
			n := l.g.Demand(0).Limiters[0].Tokens
			if n.Used != 200 || n.Taken != 200 || n.First != 100 || n.Waiting != 100 {
				t.Errorf("it needs %+v", n)
			}
			since := l.g.Demand(0).Number
			if uses := l.g.Demand(since).Limiters[0].Uses; len(uses) > 0 {
				t.Errorf("%+v has changed", uses)
			}
			time.Sleep(3 * time.Second)
			l.end(0, 30)
			l.has(3, 0)
			got := l.g.Demand(since).Limiters[0]
			if len(got.Uses) != 2 || got.Uses[0].Tokens != 130 || got.Uses[1].Tokens != 100 || got.Tokens.Used != 230 || got.Tokens.Taken != 300 {
				t.Errorf("it used %+v, in all %+v", got.Uses, got.Tokens)
			}
		},
		"a call larger than a minute's tokens": func(_ *testing.T, l *lent) {
			l.grant(8, 99, 5999, 0)
			l.call(1, 9000)
			l.has(0, 1)
			l.grant(8, 99, 6000, 0)
			l.has(1, 0)
		},
		"a call that is given up": func(t *testing.T, l *lent) {
			l.grant(1, 99, 999, 0)
			h := l.h.(*host)
			l.g.mu.Lock()
			w := l.g.enqueue(h, sdk.Call{Endpoint: "http://api", Tokens: 10})
			l.g.mu.Unlock()
			l.g.withdraw(w)
			if n := l.g.Demand(0).Limiters[0]; n.InFlight != 0 || n.Requests.Used != 0 || n.Tokens.Used != 0 || n.Uses[0] != (Use{}) {
				t.Errorf("it counts: %+v", n)
			}
		},
		"it is told once that calls wait": func(t *testing.T, l *lent) {
			l.grant(1, 99, 999, 0)
			l.call(1, 10)
			if l.wanted() {
				t.Error("nothing waits")
			}
			l.call(1, 10)
			if !l.wanted() {
				t.Error("it is not told")
			}
			l.call(5, 10)
			l.grant(1, 100, 1000, 0)
			if l.wanted() {
				t.Error("it is told again")
			}
		},
	} {
		bubble(t, name, func(t *testing.T) { test(t, newLent(t, pipeline.Budget{})) })
	}
}

// A budget that is not granted makes calls wait; only who grants it says that it is spent.
func TestGrantedBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLent(t, pipeline.Budget{Tokens: 1000})
		l.grant(8, 99, 9999, 150)
		l.call(3, 100)
		l.has(1, 2)
		if !l.wanted() {
			t.Error("it does not say that calls wait")
		}
		s := l.g.Demand(0).Budget
		if s.Most.Tokens != 150 || s.Reserved.Tokens != 100 || s.InFlight != 1 || s.First == nil || s.First.Tokens != 100 || s.Waiting.Tokens != 200 {
			t.Errorf("it needs %+v", s)
		}
		l.end(0, 50)
		l.has(2, 1)
		l.end(1, 100)
		l.has(2, 1) // none is under way, and it waits
		if s = l.g.Demand(0).Budget; s.Spent.Tokens != 150 || s.Reserved.Tokens != 0 || s.Calls != 2 {
			t.Errorf("it spent %+v", s)
		}
		var waits []terminal.Wait
		l.g.Waits(time.Now(), func(w terminal.Wait) { waits = append(waits, w) })
		if len(waits) != 1 || waits[0].Why != "the run's budget has no room until calls under way have ended" {
			t.Errorf("it waits for %+v", waits)
		}
		l.g.Grant(Grant{Until: time.Now().Add(time.Second), Spent: "the budget is spent"})
		synctest.Wait()
		if len(l.refused) != 1 || sdk.CodeOf(l.refused[0]) != sdk.CodeStopped || !l.g.Refuses("sample.llm") {
			t.Errorf("refused: %v", l.refused)
		}
		l.refused = nil
		l.grant(8, 99, 9999, 600) // another part of the run has begun
		l.call(1, 100)
		l.has(3, 0)
	})
}

// TestHear: what one learns of an endpoint holds for the other.
func TestHear(t *testing.T) {
	busy := sdk.Result{Status: sdk.StatusBusy, RetryAfter: 20 * time.Second, Reason: "429"}
	down := sdk.Result{Status: sdk.StatusDown, Reason: "connection refused"}
	synctest.Test(t, func(t *testing.T) {
		a, b := newLent(t, pipeline.Budget{}), newLent(t, pipeline.Budget{})
		pass := func() (n int) {
			for {
				select {
				case e := <-a.g.Learnt():
					b.g.Hear(e)
					n++
				default:
					return n
				}
			}
		}
		try := func(l *lent, o sdk.Result) error {
			l.grant(8, 99, 9999, 0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			release, err := l.h.Acquire(ctx, sdk.Call{Endpoint: "http://api"})
			if err == nil {
				release(o)
			}
			return err
		}
		good := sdk.Result{Status: sdk.StatusOK}
		if err := try(a, good); err != nil || pass() != 0 {
			t.Errorf("there was something to tell, or %v", err)
		}
		if err := try(a, busy); err != nil || pass() != 1 {
			t.Errorf("a refusal is not told: %v", err)
		}
		if err := try(b, good); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the service wants no calls: %v", err)
		}
		time.Sleep(20 * time.Second)
		if err := try(b, good); err != nil {
			t.Error(err)
		}
		for range 2 * downInARow { // until its circuit is open
			if err := try(a, down); err != nil {
				break
			}
			time.Sleep(2 * time.Second)
			pass()
		}
		if !a.g.breakers["http://api"].open || !b.g.breakers["http://api"].open {
			t.Fatal("the service is down, and not both know")
		}
		time.Sleep(maxCoolDown / 4)
		for _, l := range []*lent{a, b} {
			if err := try(l, good); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nobody permitted a trial call: %v", err)
			}
			if d := l.g.Demand(0); len(d.Trials) != 1 || d.Trials[0] != (Trial{Endpoint: "http://api"}) {
				t.Errorf("it asks to try %+v", d.Trials)
			}
		}
		a.g.Grant(Grant{Until: time.Now().Add(10 * time.Second), Limiters: []Given{{Block: "api", Share: 8, Requests: 99, Tokens: 9999}}, Trials: []string{"http://api"}})
		a.call(2, 0)
		if len(a.admitted) != 1 {
			t.Fatalf("%d trial calls", len(a.admitted))
		}
		if pass(); b.g.breakers["http://api"].elsewhere.IsZero() || len(b.g.Demand(0).Trials) != 0 {
			t.Error("another tries it, and it asks to try it as well")
		}
		a.end(0, 0)
		a.has(2, 0)
		pass()
		if err := try(b, good); err != nil {
			t.Errorf("the service is back: %v", err)
		}
	})
}
