package governor

import (
	"context"
	"maps"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/sdk"
)

// limiter is a limit with a queue of waiting calls per stage; the queues take turns.
type limiter struct {
	block    string // name of the limit block; empty: the limit of an endpoint
	endpoint string

	concurrency      int
	pace             *pace // changes concurrency
	requests, tokens *rate
	inFlight         int
	admitted         time.Time // when it last admitted a call
	queues           []*queue
	turn             int // index of the queue whose turn it is
}

// Counts are sums over calls. Tokens and cost are as services reported them; a call with an unknown
// result adds none.
type Counts struct {
	Calls        int     `json:"calls"`  // calls that have ended
	Failed       int     `json:"failed"` // ended calls that failed; a retry may have succeeded
	InFlight     int     `json:"-"`
	InputTokens  uint64  `json:"input_tokens"` // including cached tokens
	CachedTokens uint64  `json:"cached_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost"`       // by the stage's price
	CacheHits    int     `json:"cache_hits"` // responses read from the cache
	CachePuts    int     `json:"cache_puts"` // responses stored in the cache
}

// stage counts the calls of a stage and records why its calls are refused.
type stage struct {
	Counts
	served    bool     // one of its calls was served
	denied    int      // denied calls since the last served call
	stopped   error    // why its calls are refused; nil: they are admitted
	trouble   *breaker // the breaker of the service that did not answer its last call; nil: none
	relaxed   bool     // it is no longer required
	covered   bool     // other stages answer its items while its service is down
	unbounded bool     // its calls do not state their maximum usage, and that was logged
}

// count adds a call. A denial does not count if the call has an alternative.
func (s *stage) count(o sdk.Result, p pipeline.Price, alternative bool) {
	switch {
	case o.Status == sdk.StatusOK:
		s.served, s.denied = true, 0
	case o.Status == sdk.StatusDenied && !alternative:
		s.denied++
	}
	s.Calls++
	if o.Status != sdk.StatusOK {
		s.Failed++
	}
	s.use(o.Usage)
	s.Cost += p.Of(o.Usage)
}

// use adds tokens with Usage.Add, whose sums never overflow.
func (c *Counts) use(u sdk.Usage) {
	all := c.usage()
	all.Add(u)
	c.InputTokens, c.CachedTokens, c.OutputTokens = all.InputTokens, all.CachedTokens, all.OutputTokens
}

func (c *Counts) usage() sdk.Usage {
	return sdk.Usage{InputTokens: c.InputTokens, CachedTokens: c.CachedTokens, OutputTokens: c.OutputTokens}
}

func (c *Counts) add(o Counts) {
	c.Calls += o.Calls
	c.Failed += o.Failed
	c.InFlight += o.InFlight
	c.use(o.usage())
	c.Cost += o.Cost
	c.CacheHits += o.CacheHits
	c.CachePuts += o.CachePuts
}

func (c *Counts) subtract(o Counts) {
	c.Calls -= o.Calls
	c.Failed -= o.Failed
	c.InFlight -= o.InFlight
	c.InputTokens -= o.InputTokens
	c.CachedTokens -= o.CachedTokens
	c.OutputTokens -= o.OutputTokens
	c.Cost -= o.Cost
	c.CacheHits -= o.CacheHits
	c.CachePuts -= o.CachePuts
}

// StageCounts are the counts of one stage.
type StageCounts struct {
	Stage string `json:"stage"` // "sample.llm"
	Counts
}

// Snapshot holds the counts of a run at one moment.
type Snapshot struct {
	Stages []StageCounts `json:"stages"` // by name
	Total  Counts        `json:"total"`
}

// Snapshot returns the counts so far.
func (c *Governor) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s Snapshot
	for _, name := range slices.Sorted(maps.Keys(c.stages)) {
		counts := c.stages[name].Counts
		s.Stages = append(s.Stages, StageCounts{name, counts})
		s.Total.add(counts)
	}
	return s
}

// Since returns the difference to an earlier snapshot.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	before := map[string]Counts{}
	for _, stage := range earlier.Stages {
		before[stage.Stage] = stage.Counts
	}
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		s.Stages[i].subtract(before[s.Stages[i].Stage])
	}
	s.Total.subtract(earlier.Total)
	return s
}

func (c *Governor) limiterOf(h *host, endpoint string) *limiter {
	block := ""
	if h.limit != nil {
		block, endpoint = h.limit.Name, ""
	}
	for _, g := range c.limiters {
		if g.block == block && g.endpoint == endpoint {
			return g
		}
	}
	g := &limiter{block: block, endpoint: endpoint, concurrency: grammar.DefaultConcurrency}
	if address, err := url.Parse(endpoint); err == nil && confine.ThisMachine(address.Host) {
		g.pace, g.concurrency = &pace{most: grammar.DefaultConcurrency}, 1
	}
	if h.limit != nil {
		now := time.Now()
		g.concurrency = h.limit.Concurrency
		g.requests, g.tokens = newRate(h.limit.Requests, now), newRate(h.limit.Tokens, now)
	}
	c.limiters = append(c.limiters, g)
	return g
}

// room reports whether a call may be sent and, if not, how long to wait; 0: wait until another call
// has ended.
func (l *limiter) room(now time.Time, w *waiter) (wait time.Duration, ok bool) {
	if l.inFlight >= l.concurrency {
		return 0, false
	}
	wait = max(l.requests.wait(now, 1), l.tokens.wait(now, float64(w.call.Tokens)))
	return wait, wait == 0
}

// waiting reports whether a call waits.
func (l *limiter) waiting() bool {
	return slices.ContainsFunc(l.queues, func(q *queue) bool { return q.first() != nil })
}

// pop removes the first call of a queue and gives the turn to the next queue.
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

// window is a minute plus the maximum difference in latency between two calls, so that two calls
// sent a window apart never arrive within one minute.
const window = time.Minute + 500*time.Millisecond

// burst is the share of a minute's amount that may be used at once after a pause. It is small because
// services count over less than a minute, and because a run that has used up the whole amount would have
// to wait.
const burst = 1.0 / 6

// rate limits the calls or tokens used within any window with a log of the last window. A token
// bucket spreads the uses evenly.
type rate struct {
	limit  float64 // per window
	used   []*use  // within the last window, oldest first
	sum    float64 // of the amounts in used
	level  float64 // of the bucket; negative after a use larger than the bucket
	filled time.Time
}

// use is an amount with its time.
type use struct {
	at     time.Time
	amount float64
	gone   bool // the use is older than the window
}

// newRate returns nil if there is no limit.
func newRate(limit int, now time.Time) *rate {
	if limit <= 0 {
		return nil
	}
	r := &rate{limit: float64(limit), filled: now}
	r.level = r.capacity()
	return r
}

func (r *rate) capacity() float64 { return max(r.limit*burst, 1) }

// perSecond returns the rate at which the bucket fills.
func (r *rate) perSecond() float64 { return r.limit / time.Minute.Seconds() }

// wait returns how long to wait until an amount may be used; 0: it may be used now. An amount above the limit
// waits until the window is empty.
func (r *rate) wait(now time.Time, amount float64) (until time.Duration) {
	if r == nil {
		return 0
	}
	r.advance(now)
	room := r.limit - min(amount, r.limit) - r.sum
	for i := 0; room < -rounding && i < len(r.used); i++ {
		room += r.used[i].amount
		until = r.used[i].at.Add(window).Sub(now)
	}
	if missing := min(amount, r.capacity()) - r.level; missing > rounding {
		until = max(until, time.Duration(math.Ceil(missing/r.perSecond()*float64(time.Second))))
	}
	return until
}

// rounding is the tolerated rounding error of sums.
const rounding = 1e-6

// record notes an amount that is used now.
func (r *rate) record(now time.Time, amount float64) *use {
	if r == nil {
		return nil
	}
	r.advance(now)
	r.sum += amount
	r.level -= amount
	u := &use{at: now, amount: amount}
	r.used = append(r.used, u)
	return u
}

// correct replaces the estimated amount of a use by the real one.
func (r *rate) correct(u *use, amount float64) {
	if r == nil || u == nil || u.gone {
		return
	}
	r.sum += amount - u.amount
	r.level = min(r.level+u.amount-amount, r.capacity())
	u.amount = amount
}

// advance drops uses that are older than the window, and refills the bucket.
func (r *rate) advance(now time.Time) {
	n := 0
	for ; n < len(r.used) && now.Sub(r.used[n].at) >= window; n++ {
		r.sum -= r.used[n].amount
		r.used[n].gone = true
	}
	if r.used = r.used[n:]; r.sum < rounding {
		r.sum = 0
	}
	r.level = min(r.level+now.Sub(r.filled).Seconds()*r.perSecond(), r.capacity())
	r.filled = now
}

// Responses stores the answers of services. *cache.Cache implements it with a folder.
type Responses interface {
	// Get returns the value of a key.
	Get(key sdk.Key) (value []byte, ok bool)
	// Add stores a value of at most sdk.MaxCached bytes under a key. If several callers ask the same
	// at the same time, the first value stays. about describes the value in a few words. After Add
	// returns, the value survives the end of every process.
	Add(key sdk.Key, about string, value []byte) error
	// Put stores a value like Add, but replaces an existing one.
	Put(key sdk.Key, about string, value []byte) error
}

// look returns the cached values of a stage's keys.
func (h *host) look(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	o := h.governor.options
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o.Mode == Refresh && !h.putHere(key) {
			continue
		}
		if value, ok := o.Cache.Get(key); ok {
			values[i] = value
		}
	}
	return values, nil
}
