package lease

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// world is a run in a time of its own: workers that call a service, processes that may keep the
// accounts, a network between them that delays and loses messages, and all that happens to machines.
type world struct {
	t      testing.TB
	seed   uint64
	r      *rand.Rand
	now    time.Time
	events queue
	limits Limits
	loss   float64 // share of messages that get lost
	slow   time.Duration

	workers []*model
	keepers []*post
	service service

	revision uint64 // of the claim in the bucket
	ledger   Ledger
	fence    uint64 // revision of the ledger
	wrote    time.Time
	failed   string
}

type event struct {
	at time.Time
	n  int
	do func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].n < q[j].n
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

var counter int

func (w *world) after(d time.Duration, do func()) {
	counter++
	heap.Push(&w.events, event{w.now.Add(d), counter, do})
}

func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.events) > 0 && w.failed == "" && !w.events[0].at.After(end) {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
	if w.failed != "" {
		w.t.Fatalf("seed %d: %s", w.seed, w.failed)
	}
}

func (w *world) fail(format string, a ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf("after %s: ", w.now.Sub(time.Unix(0, 0))) + fmt.Sprintf(format, a...)
	}
}

func (w *world) chance(p float64) bool { return w.r.Float64() < p }

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.r.Int64N(int64(b-a)+1))
}

// send carries a message, or loses it.
func (w *world) send(do func()) {
	if w.chance(w.loss) {
		return
	}
	d := w.between(100*time.Microsecond, 2*time.Millisecond)
	if w.slow > 0 && w.chance(0.05) {
		d = w.between(0, w.slow)
	}
	w.after(d, do)
}

// service counts what it gets.
type service struct {
	underWay int
	calls    []*call // within the last minute
	begun    int
	tokens   float64 // of calls
	cost     int64   // of calls that have ended
	reserved int64
	most     int
}

type call struct {
	of             *model
	at             time.Time
	estimate, took float64
	done, gone     bool
	orphan         bool // it outlived a lease of its worker
}

// arrive checks the limits.
func (w *world) arrive(c *call) {
	s := &w.service
	s.underWay++
	s.begun++
	s.reserved += int64(c.estimate)
	orphans := 0
	for _, m := range w.workers {
		if !w.now.Before(m.until) || m.dead {
			m.orphan()
		}
		orphans += m.orphans
	}
	limit := w.limits.Blocks[0]
	if s.underWay-orphans > limit.Concurrency {
		w.fail("%d calls are under way beside %d of workers without a lease; %d may", s.underWay-orphans, orphans, limit.Concurrency)
	}
	s.most = max(s.most, s.underWay-orphans)
	s.calls = append(s.calls, c)
	s.tokens += c.estimate
	for w.now.Sub(s.calls[0].at) > time.Minute {
		if s.tokens -= s.calls[0].took; !s.calls[0].done {
			s.tokens -= s.calls[0].estimate - s.calls[0].took
		}
		s.calls[0].gone = true
		s.calls = s.calls[1:]
	}
	requests := len(s.calls)
	if tokens := s.tokens; limit.Tokens > 0 && tokens > float64(limit.Tokens)+rounding && requests > 1 {
		w.fail("%g tokens within a minute, %d may be", tokens, limit.Tokens)
	}
	if limit.Requests > 0 && requests > limit.Requests {
		w.fail("%d requests within a minute, %d may be", requests, limit.Requests)
	}
	if b := w.limits.Budget.Tokens; b > 0 && s.cost+s.reserved > b {
		w.fail("%d tokens are spent and %d reserved, of %d", s.cost, s.reserved, b)
	}
}

// post is a process that may keep the accounts.
type post struct {
	w        *world
	name     string
	accounts *accounts
	until    time.Time // of its claim
	rev      uint64    // of its claim
	fence    uint64    // of its ledger
	dead     bool
	stall    time.Time

	seen   uint64 // of the claim
	seenAt time.Time
}

const claimed, renewal = 6 * time.Second, 2 * time.Second

// tick renews or takes the claim.
func (p *post) tick() {
	if p.dead {
		return
	}
	w := p.w
	if w.now.Before(p.stall) {
		w.after(p.stall.Sub(w.now), p.tick)
		return
	}
	defer w.after(renewal/4, p.tick)
	if p.accounts != nil {
		if p.rev != w.revision {
			p.accounts = nil
			return
		}
		if p.until.Sub(w.now) <= claimed-renewal {
			w.revision++
			p.rev, p.until = w.revision, w.now.Add(claimed)
		}
		return
	}
	if p.seen != w.revision || p.seenAt.IsZero() {
		p.seen, p.seenAt = w.revision, w.now
	}
	if w.revision == 0 || w.now.Sub(p.seenAt) > claimed {
		w.revision++
		p.rev, p.until = w.revision, w.now.Add(claimed)
		p.accounts = takeOver(w.now, fmt.Sprint(p.name, p.rev), w.ledger, w.limits, w.now.Sub(w.wrote), usual())
		w.fence++
		p.fence = w.fence
	}
}

// keeper returns who answers reports.
func (w *world) keeper() *post {
	for _, p := range w.keepers {
		if p.accounts != nil && !p.dead && w.now.Before(p.until) && !w.now.Before(p.stall) {
			return p
		}
	}
	return nil
}

func (p *post) report(r report, reply func(answer)) {
	w := p.w
	a, write := p.accounts.report(w.now, r)
	if a == nil {
		return
	}
	send := func() {
		if !p.dead && w.now.Before(p.until) && !w.now.Before(p.stall) {
			w.send(func() { reply(*a) })
		}
	}
	if !write {
		send()
		return
	}
	l := p.accounts.ledger(w.now)
	w.after(w.between(0, 5*time.Millisecond), func() {
		if p.fence != w.fence || p.dead {
			return
		}
		w.ledger, w.wrote = l, w.now
		send()
	})
}
