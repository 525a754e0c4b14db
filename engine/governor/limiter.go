package governor

import (
	"slices"
	"time"

	"github.com/racflow/racflow/engine/grammar"
)

// limiter is a limit with a queue of waiting calls per stage; the queues take turns.
type limiter struct {
	block    string // name of the limit block; empty: the limit of an endpoint
	endpoint string

	concurrency      int
	requests, tokens *rate
	inFlight         int
	admitted         time.Time // the last call
	queues           []*queue
	turn             int    // the queue that is first
	given            *given // where the limit is held together with others; nil: concurrency, requests and tokens hold
}

// limiterOf returns the limiter of a stage's call.
func (c *Governor) limiterOf(h *host, endpoint string) *limiter {
	block := ""
	if h.limit != nil {
		block, endpoint = h.limit.Name, ""
	}
	if g := c.find(block, endpoint); g != nil {
		return g
	}
	g := &limiter{block: block, endpoint: endpoint, concurrency: grammar.DefaultConcurrency}
	switch {
	case c.together != nil:
		g.given = newGiven(c.together, h.limit)
	case h.limit != nil:
		now := time.Now()
		g.concurrency = h.limit.Concurrency
		g.requests, g.tokens = newRate(h.limit.Requests, now), newRate(h.limit.Tokens, now)
	}
	c.limiters = append(c.limiters, g)
	return g
}

// find returns a limiter; nil: no call needed it yet.
func (c *Governor) find(block, endpoint string) *limiter {
	for _, g := range c.limiters {
		if g.block == block && g.endpoint == endpoint {
			return g
		}
	}
	return nil
}

// room reports whether a call may be sent and, if not, after which wait; 0: when another
// call has ended.
func (l *limiter) room(now time.Time, w *waiter) (wait time.Duration, ok bool) {
	if l.given != nil {
		return 0, l.given.allows(now, l.inFlight, w)
	}
	if l.inFlight >= l.concurrency {
		return 0, false
	}
	wait = max(l.requests.wait(now, 1), l.tokens.wait(now, float64(w.call.Tokens)))
	return wait, wait == 0
}

// pop takes the first call from a queue and gives the turn to the next queue.
func (l *limiter) pop(at int) *waiter {
	l.turn = (at + 1) % len(l.queues)
	w := l.queues[at].first()
	l.queues[at].remove(w)
	return w
}

// refuse fails the first call of a queue.
func (l *limiter) refuse(at int, err error) {
	w := l.queues[at].first()
	l.queues[at].remove(w)
	w.verdict <- err
}

// queue returns the queue of a stage.
func (l *limiter) queue(s *stage) *queue {
	for _, q := range l.queues {
		if q.stage == s {
			return q
		}
	}
	q := &queue{stage: s}
	l.queues = append(l.queues, q)
	return q
}

// queue holds the waiting calls of one stage in order.
type queue struct {
	stage   *stage
	waiting []*waiter
}

func (q *queue) add(w *waiter) { q.waiting = append(q.waiting, w) }

func (q *queue) first() *waiter {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[0]
}

func (q *queue) remove(w *waiter) {
	w.queued = false
	if q.first() == w {
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		return
	}
	at := slices.Index(q.waiting, w)
	q.waiting = slices.Delete(q.waiting, at, at+1)
}
