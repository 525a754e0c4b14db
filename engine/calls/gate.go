package calls

import (
	"slices"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
)

// gate is a limit with the calls that wait for it: a queue for each stage, which
// get their turns one after the other.
type gate struct {
	block    string // the name of the limit block; empty: the limit of an endpoint
	endpoint string

	concurrency      int
	requests, tokens *rate
	underWay         int
	queues           []*queue
	turn             int // the queue that is asked first
}

// gateOf finds the gate of a stage's call.
func (c *Control) gateOf(h *host, endpoint string) *gate {
	block := ""
	if h.limit != nil {
		block, endpoint = h.limit.Name, ""
	}
	for _, g := range c.gates {
		if g.block == block && g.endpoint == endpoint {
			return g
		}
	}
	g := &gate{block: block, endpoint: endpoint, concurrency: pipeline.DefaultConcurrency}
	if h.limit != nil {
		now := time.Now()
		g.concurrency = h.limit.Concurrency
		g.requests, g.tokens = newRate(h.limit.Requests, now), newRate(h.limit.Tokens, now)
	}
	c.gates = append(c.gates, g)
	return g
}

// room reports whether a call may be sent; if not, when: 0 is when another has
// ended.
func (g *gate) room(now time.Time, w *waiter) (wait time.Duration, ok bool) {
	if g.underWay >= g.concurrency {
		return 0, false
	}
	wait = max(g.requests.wait(now, 1), g.tokens.wait(now, float64(w.call.Tokens)))
	return wait, wait == 0
}

// pop takes the first call from a queue; the next turn is the next queue's.
func (g *gate) pop(at int) *waiter {
	g.turn = (at + 1) % len(g.queues)
	w := g.queues[at].first()
	g.queues[at].remove(w)
	return w
}

// refuse ends the waiting of a queue's first call.
func (g *gate) refuse(at int, err error) {
	w := g.queues[at].first()
	g.queues[at].remove(w)
	w.verdict <- err
}

// queue returns the queue of a stage.
func (g *gate) queue(s *stage) *queue {
	for _, q := range g.queues {
		if q.stage == s {
			return q
		}
	}
	q := &queue{stage: s}
	g.queues = append(g.queues, q)
	return q
}

// queue holds the waiting calls of one stage, the first of them first.
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
