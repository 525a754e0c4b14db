package lease

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk"
)

// world is a run in a bubble of its own time: workers that call a service, processes that may be the keeper, and a network
// between them that delays and loses messages.
type world struct {
	t      testing.TB
	seed   uint64
	limits Limits
	loss   float64       // share of messages that get lost
	slow   time.Duration // delay of some messages at most
	ctx    context.Context
	end    context.CancelFunc
	jobs   sync.WaitGroup // of workers
	mail   sync.WaitGroup // messages on their way

	mu       sync.Mutex
	r        *rand.Rand
	value    []byte // of the only key
	revision uint64
	serves   map[string]*subscription
	hears    map[string][]*subscription
	workers  []*worker
	keepers  []*process
	failed   string

	underWay int
	calls    []*sent // within the last minute
	begun    int
	most     int
	tokens   float64 // of calls
	spent    int64   // by calls that have ended
	reserved int64
}

// subscription is what a process does with messages of a subject.
type subscription struct {
	p *process
	f func([]byte) []byte
}

func newWorld(t testing.TB, seed uint64, limits Limits) *world {
	w := &world{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 22)), limits: limits, serves: map[string]*subscription{}, hears: map[string][]*subscription{}}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

func (w *world) draw(f func(r *rand.Rand) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w.r)
}

func (w *world) between(a, b time.Duration) (d time.Duration) {
	w.draw(func(r *rand.Rand) bool { d = a + time.Duration(r.Int64N(int64(b-a)+1)); return true })
	return d
}

// process is a process with its connection. It implements Room.
type process struct {
	w     *world
	mu    sync.Mutex
	gone  chan struct{} // closed when it dies
	stall time.Time     // until then no message comes or goes
	acked time.Time     // when the last answered question was sent
	o     Options
	close func()
}

func (w *world) process(name string) *process {
	return &process{w: w, gone: make(chan struct{}), acked: time.Now(), o: Options{Name: name, Log: slog.New(slog.DiscardHandler), Limits: w.limits}}
}

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gone:
	default:
		close(p.gone)
	}
}

func (p *process) dead() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *process) stop(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall = until
}

// pass waits as long as a message takes that comes to the process or goes from it. A process that stands still does
// neither, and what a dead one says or is said is never answered.
func (p *process) pass(ctx context.Context) error {
	d := p.w.between(50*time.Microsecond, time.Millisecond)
	if p.w.draw(func(r *rand.Rand) bool { return p.w.slow > 0 && r.Float64() < 0.05 }) {
		d = p.w.between(0, p.w.slow)
	}
	for d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
		p.mu.Lock()
		d = time.Until(p.stall)
		p.mu.Unlock()
	}
	if p.dead() || p.w.draw(func(r *rand.Rand) bool { return r.Float64() < p.w.loss }) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// Get implements Room, like the following. The servers themselves lose nothing.
func (p *process) Get(ctx context.Context, _ string) ([]byte, uint64, error) {
	if err := p.pass(ctx); err != nil {
		return nil, 0, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.w.value, p.w.revision, nil
}

func (p *process) Swap(ctx context.Context, _ string, value []byte, revision uint64) (uint64, error) {
	if err := p.pass(ctx); err != nil {
		return 0, err
	}
	p.w.mu.Lock()
	if revision != p.w.revision {
		p.w.mu.Unlock()
		return 0, bus.ErrRevision
	}
	p.w.revision++
	p.w.value, revision = value, p.w.revision
	p.w.mu.Unlock()
	return revision, p.pass(ctx)
}

func (p *process) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	asked := time.Now()
	if err := p.pass(ctx); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	s := p.w.serves[subject]
	p.w.mu.Unlock()
	if s == nil {
		return nil, bus.ErrNobody
	}
	if err := s.p.pass(ctx); err != nil {
		return nil, err
	}
	answer := s.f(data)
	if err := s.p.pass(ctx); err != nil {
		return nil, err
	}
	if err := p.pass(ctx); err != nil {
		return nil, err
	}
	if len(answer) > 0 {
		p.mu.Lock()
		p.acked = asked
		p.mu.Unlock()
	}
	return answer, nil
}

func (p *process) Serve(subject string, f func([]byte) []byte) (func(), error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.serves[subject] = &subscription{p, f}
	return func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		delete(p.w.serves, subject)
	}, nil
}

func (p *process) Tell(subject string, data []byte) error {
	p.w.mu.Lock()
	hears := slices.Clone(p.w.hears[subject])
	p.w.mu.Unlock()
	for _, s := range hears {
		p.w.mail.Go(func() {
			if p.pass(p.w.ctx) == nil && s.p.pass(p.w.ctx) == nil {
				s.f(data)
			}
		})
	}
	return nil
}

func (p *process) Hear(subject string, f func([]byte)) (func(), error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	s := &subscription{p, func(data []byte) []byte { f(data); return nil }}
	p.w.hears[subject] = append(p.w.hears[subject], s)
	return func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.w.hears[subject] = slices.DeleteFunc(p.w.hears[subject], func(o *subscription) bool { return o == s })
	}, nil
}

// keep adds a process that wants to be the keeper, as a caller does.
func (w *world) keep() {
	p := w.process(fmt.Sprint("keeper", len(w.keepers)))
	w.keepers = append(w.keepers, p)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	p.close = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		k := Keep(ctx, p, p.o)
		select {
		case <-ctx.Done():
		case <-p.gone:
		}
		k.Close()
	}()
}

// worker is a process whose Governor asks the keeper.
type worker struct {
	*process
	g    *governor.Governor
	h    *Holder
	took time.Duration  // of a call, at most
	size func() float64 // of a call, in tokens

	sent    map[*sent]bool // under way
	orphans int            // of these, calls that outlived what the keeper knew of the worker
	refused error
}

type sent struct {
	at             time.Time
	estimate, took float64
	done, orphan   bool
}

func (w *world) add(jobs int, took time.Duration, size func() float64) *worker {
	p := w.process(fmt.Sprint("worker", len(w.workers)))
	m := &worker{process: p, took: took, size: size, sent: map[*sent]bool{}}
	m.g = governor.New(w.ctx, governor.Options{Log: p.o.Log})
	h, err := Hold(w.ctx, p, m.g, p.o)
	if err != nil {
		w.t.Fatal(err)
	}
	m.h = h
	m.g.AdmitBy(h)
	w.mu.Lock()
	w.workers = append(w.workers, m)
	w.mu.Unlock()
	m.work(jobs)
	return m
}

// work adds jobs, each of which makes one call after the other until it is refused.
func (m *worker) work(jobs int) {
	w, stage := m.w, governor.Stage{Name: "sample.llm", Required: true}
	if l := w.limits.Blocks[0]; true {
		stage.Limit = &pipeline.Limit{Name: l.Name, Concurrency: l.Concurrency, Requests: l.Requests, Tokens: l.Tokens}
	}
	host := m.g.Stage(stage)
	for range jobs {
		w.jobs.Go(func() {
			for {
				var size float64
				w.draw(func(*rand.Rand) bool { size = m.size(); return true })
				release, err := host.Acquire(w.ctx, sdk.Call{Endpoint: "http://service", Tokens: int(size), Most: sdk.Usage{InputTokens: uint64(size)}})
				if m.dead() || err != nil {
					w.mu.Lock()
					m.refused = err
					w.mu.Unlock()
					return
				}
				c := w.arrive(m, size)
				time.Sleep(w.between(m.took/2, m.took))
				w.leave(m, c)
				m.mu.Lock()
				rest := time.Until(m.stall) // who stands still notices late
				m.mu.Unlock()
				time.Sleep(rest)
				release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: uint64(c.took)}})
			}
		})
	}
}

// arrive checks the limits.
func (w *world) arrive(m *worker, size float64) *sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	c := &sent{at: now, estimate: size, took: max(float64(int(size*(0.3+0.7*w.r.Float64()))), 1)}
	m.sent[c] = true
	w.underWay++
	w.begun++
	w.reserved += int64(size)
	w.tokens += size
	w.calls = append(w.calls, c)
	orphans := 0
	for _, m := range w.workers {
		m.process.mu.Lock()
		silent := now.Sub(m.acked) >= m.h.terms.lease
		m.process.mu.Unlock()
		for c := range m.sent {
			if silent && !c.orphan {
				c.orphan = true
				m.orphans++
			}
		}
		orphans += m.orphans
	}
	limit := w.limits.Blocks[0]
	if w.underWay-orphans > limit.Concurrency {
		w.fail("%d calls are under way beside %d of silent workers; %d may", w.underWay-orphans, orphans, limit.Concurrency)
	}
	w.most = max(w.most, w.underWay-orphans)
	for now.Sub(w.calls[0].at) > time.Minute {
		w.tokens -= w.calls[0].counts()
		w.calls[0].at = time.Time{}
		w.calls = w.calls[1:]
	}
	if limit.Tokens > 0 && w.tokens > float64(limit.Tokens)+rounding && len(w.calls) > 1 {
		w.fail("%g tokens within a minute, %d may be", w.tokens, limit.Tokens)
	}
	if limit.Requests > 0 && len(w.calls) > limit.Requests {
		w.fail("%d requests within a minute, %d may be", len(w.calls), limit.Requests)
	}
	if b := w.limits.Budget.Tokens; b > 0 && w.limits.Spent.Tokens+w.spent+w.reserved > b {
		w.fail("%d tokens are spent and %d reserved, of %d", w.spent, w.reserved, b)
	}
	return c
}

func (c *sent) counts() float64 {
	if c.done {
		return c.took
	}
	return c.estimate
}

func (w *world) leave(m *worker, c *sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.underWay--
	w.reserved -= int64(c.estimate)
	w.spent += int64(c.took)
	if !c.at.IsZero() {
		w.tokens -= c.estimate - c.took
	}
	c.done = true
	if c.orphan {
		m.orphans--
	}
	delete(m.sent, c)
}

func (w *world) fail(format string, a ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, a...)
	}
}

// finish ends all processes, and fails the test if a limit was exceeded.
func (w *world) finish() {
	w.end()
	for _, m := range w.workers {
		m.h.Close()
	}
	for _, p := range w.keepers {
		p.close()
	}
	w.jobs.Wait()
	w.mail.Wait()
	if w.failed != "" {
		w.t.Errorf("seed %d: %s", w.seed, w.failed)
	}
}
