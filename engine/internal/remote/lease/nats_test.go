package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// place is a run at real servers.
type place struct {
	t       *testing.T
	servers *natstest.Servers
	limits  Limits
	limit   *pipeline.Limit
	terms   terms
}

func newPlace(t *testing.T, limits Limits, made terms) *place {
	p := &place{t: t, servers: natstest.Start(t, 1), limits: limits, terms: made}
	for _, l := range limits.Blocks {
		p.limit = &pipeline.Limit{Name: l.Name, Concurrency: l.Concurrency, Requests: l.Requests, Tokens: l.Tokens}
	}
	must.Get(p.connect("begin").Create(t.Context(), bus.Config{ID: "r1", Definition: []byte("{}"), Replicas: 1}))(t)
	return p
}

func (p *place) connect(name string) *bus.Conn {
	p.t.Helper()
	c := must.Get(bus.Connect(p.t.Context(), bus.Options{Servers: p.servers.URL(), Name: name, Log: p.log()}))(p.t)
	p.t.Cleanup(c.Close)
	return c
}

func (p *place) open(name string) *bus.Run {
	p.t.Helper()
	return must.Get(p.connect(name).Open(p.t.Context(), "r1"))(p.t)
}

func (p *place) log() *slog.Logger { return slog.New(slog.NewTextHandler(p.t.Output(), nil)) }

// keep begins a keeper as the caller has it. die ends it so that it answers nothing, and gives nothing back.
func (p *place) keep() (die func()) {
	p.t.Helper()
	c := p.connect("caller")
	k := Keep(p.t.Context(), must.Get(c.Open(p.t.Context(), "r1"))(p.t), Options{Name: "caller", Log: p.log(), Limits: p.limits, terms: &p.terms})
	p.t.Cleanup(k.Close)
	return c.Close
}

// machine is a worker: a governor that holds its part.
type machine struct {
	g *governor.Governor
	h *Holder
}

func (p *place) join(name string) *machine {
	p.t.Helper()
	g := governor.New(p.t.Context(), governor.Options{Log: p.log()})
	h := must.Get(Hold(p.t.Context(), p.open(name), g, Options{Name: name, Log: p.log(), Limits: p.limits, terms: &p.terms}))(p.t)
	g.AdmitBy(h)
	p.t.Cleanup(h.Close)
	return &machine{g, h}
}

// server is a service that counts what it gets.
type server struct {
	underWay, most, calls atomic.Int64
	took, spread          time.Duration
	status                func(n int64) sdk.Result
}

func (s *server) serve() sdk.Result {
	n := s.calls.Add(1)
	now := s.underWay.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	time.Sleep(s.took + time.Duration(n*37%100-50)*s.spread) // so that calls do not end together
	s.underWay.Add(-1)
	if s.status != nil {
		return s.status(n)
	}
	return sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 60, OutputTokens: 40}}
}

// work makes calls, so many at a time, until stop is closed or a call is refused. It returns the refusal.
func (p *place) work(m *machine, jobs int, s *server, stop <-chan struct{}) error {
	stage := m.g.Stage(governor.Stage{Name: "sample.llm", Limit: p.limit, Price: &pipeline.Price{Input: 1, Output: 1}})
	ctx, cancel := context.WithCancelCause(p.t.Context())
	defer cancel(nil)
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				release, err := stage.Acquire(ctx, sdk.Call{Endpoint: "http://service", Tokens: 100, Most: sdk.Usage{InputTokens: 60, OutputTokens: 40}})
				if err != nil {
					cancel(err)
					return
				}
				release(s.serve())
			}
		})
	}
	go func() {
		select {
		case <-stop:
			cancel(nil)
		case <-ctx.Done():
		}
	}()
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// team has machines work until stop is called, which returns their refusals.
func (p *place) team(machines []*machine, jobs int, s *server) (stop func() []error) {
	end := make(chan struct{})
	errs := make([]error, len(machines))
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() { errs[i] = p.work(m, jobs, s, end) })
	}
	return func() []error {
		close(end)
		all.Wait()
		return errs
	}
}

// until waits for something that happens.
func (p *place) until(what string, is func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatal("it never happened: " + what)
		}
	}
}

func api(l pipeline.Limit) []pipeline.Limit {
	l.Name = "api"
	return []pipeline.Limit{l}
}

// TestTogether keeps 64 calls in flight over four machines, with a keeper that dies in the middle.
func TestTogether(t *testing.T) {
	p := newPlace(t, Limits{Blocks: api(pipeline.Limit{Concurrency: 64})}, terms{lease: 5 * time.Second, fresh: time.Second, every: 200 * time.Millisecond, claim: time.Second})
	die := p.keep()
	s := &server{took: 600 * time.Millisecond, spread: 4 * time.Millisecond}
	var machines []*machine
	for i := range 4 {
		machines = append(machines, p.join(fmt.Sprint("worker", i)))
	}
	stop := p.team(machines, 64, s)
	p.until("a fair share of the calls under way of each machine", func() bool {
		for _, m := range machines {
			if n := m.g.Snapshot().Total.InFlight; n < 12 || n > 20 {
				return false
			}
		}
		return true
	})
	rate := func(during time.Duration) float64 { // calls under way on average, of 64
		sum, n := 0, 0
		for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			sum, n = sum+int(s.underWay.Load()), n+1
		}
		return float64(sum) / float64(n) / 64
	}
	kept := rate(3 * time.Second)
	t.Logf("%.3f of the ideal rate with a keeper", kept)
	die()
	keeper := func() string {
		value, _, err := p.open("who looks").Get(t.Context(), Key)
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}
	p.until("a worker keeps the limits", func() bool { return strings.Contains(keeper(), `"name":"worker`) })
	p.until("all calls are under way", func() bool { return s.underWay.Load() == 64 })
	taken := rate(2 * time.Second)
	t.Logf("%.3f of the ideal rate after another has taken over", taken)
	for _, err := range stop() {
		if err != nil {
			t.Error(err)
		}
	}
	if s.most.Load() > 64 {
		t.Errorf("%d calls were in flight", s.most.Load())
	}
	if kept < 0.9 || taken < 0.9 {
		t.Errorf("%.3f and %.3f of the ideal rate", kept, taken)
	}
}

// TestSlowDown: where one machine is told to wait, all do.
func TestSlowDown(t *testing.T) {
	p := newPlace(t, Limits{Blocks: api(pipeline.Limit{Concurrency: 8})}, Options{}.lasting())
	p.keep()
	var machines []*machine
	for i := range 4 {
		machines = append(machines, p.join(fmt.Sprint("worker", i)))
	}
	var refused atomic.Int64 // when
	var late atomic.Int64
	s := &server{took: 5 * time.Millisecond}
	s.status = func(n int64) sdk.Result {
		if n == 200 {
			refused.Store(time.Now().UnixNano())
			return sdk.Result{Status: sdk.StatusBusy, RetryAfter: time.Minute, Reason: "429"}
		}
		if at := refused.Load(); at > 0 && time.Now().UnixNano()-at > int64(time.Second) {
			late.Add(1)
		}
		return sdk.Result{Status: sdk.StatusOK}
	}
	stop := p.team(machines, 4, s)
	p.until("a refusal", func() bool { return refused.Load() > 0 })
	time.Sleep(1500 * time.Millisecond)
	stop()
	after := s.calls.Load() - 200
	t.Logf("%d calls began after it or were under way", after)
	if late.Load() > 0 || s.underWay.Load() > 0 {
		t.Errorf("%d calls began a second after the service wanted none", late.Load())
	}
}
