package governor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// given is a limiter's part of a limit that several Governors share.
type given struct {
	of               *joint
	share            int
	requests, tokens ceiling
	tallies          []*tally // of the last window, oldest first

	peak      int  // maximum calls under way plus waiting since the last Demand
	announced int  // the share that the last Demand reported
	lowered   bool // more calls are under way than the share allows
	// Since there last was more, it has reported that calls wait for a larger share, or for credit.
	crowded, short bool
}

// ceiling limits an amount that only grows.
type ceiling struct {
	limit float64 // per minute; 0: no limit
	most  float64 // maximum of used
	used  float64 // total; calls under way count as estimated
	taken float64 // total of the estimates
}

// tally counts the usage of calls that began at about the same time.
type tally struct {
	Use
	began   time.Time
	changed uint64 // number of the Demand before the last change
}

// Use is the usage of calls that began at about the same time; calls under way count as estimated.
type Use struct {
	Number   int64   `json:"number"` // grows with time
	Requests float64 `json:"requests,omitempty"`
	Tokens   float64 `json:"tokens,omitempty"`
}

// tallyFor is the time span whose calls one tally counts.
const tallyFor = time.Second

func newGiven(of *joint, l *pipeline.Limit) *given {
	g := &given{of: of}
	if l != nil {
		g.requests.limit, g.tokens.limit = float64(l.Requests), float64(l.Tokens)
	}
	return g
}

func (c *ceiling) fits(amount float64) bool {
	return c.limit == 0 || c.used+min(amount, c.limit) <= c.most+rounding
}

// set applies a grant.
func (g *given) set(o Given, inFlight int) {
	g.crowded = g.crowded && o.Share <= g.share
	g.short = g.short && o.Requests <= g.requests.most && o.Tokens <= g.tokens.most
	g.share, g.requests.most, g.tokens.most = o.Share, o.Requests, o.Tokens
	if g.lowered = inFlight > g.share; !g.lowered && g.share < g.announced {
		g.of.want() // other Governors wait for the rest of the share
	}
}

// left notes that a call has ended.
func (g *given) left(inFlight int) {
	if g != nil && g.lowered && inFlight <= g.share {
		g.lowered = false
		g.of.want()
	}
}

// allows reports whether a call may be sent in addition to those under way.
func (g *given) allows(now time.Time, inFlight int, w *waiter) bool {
	return !g.of.over(now) && inFlight < g.share && g.requests.fits(1) && g.tokens.fits(float64(w.call.Tokens))
}

// wait notes that a call waits for a larger grant.
func (g *given) wait(inFlight int) {
	if g == nil {
		return
	}
	said := &g.short
	if inFlight >= g.share {
		said = &g.crowded
	}
	if !*said {
		*said = true
		g.of.want()
	}
}

// crowd notes that a new call waits.
func (l *limiter) crowd() {
	g := l.given
	if g == nil {
		return
	}
	waiting := 0
	for _, q := range l.queues {
		waiting += len(q.waiting)
	}
	g.peak = max(g.peak, l.inFlight+waiting)
	if waiting == 1 { // the first waiting call
		g.crowded, g.short = false, false
	}
}

// take counts an admitted call.
func (g *given) take(now time.Time, tokens int) *tally {
	if g == nil {
		return nil
	}
	n := len(g.tallies)
	if n == 0 || now.Sub(g.tallies[n-1].began) >= tallyFor {
		t := &tally{began: now}
		if n > 0 {
			t.Number = g.tallies[n-1].Number + 1
		}
		g.tallies = append(g.tallies, t)
	}
	for len(g.tallies) > 1 && now.Sub(g.tallies[0].began) > window+10*tallyFor {
		g.tallies[0] = nil
		g.tallies = g.tallies[1:]
	}
	t := g.tallies[len(g.tallies)-1]
	g.requests.taken++
	g.tokens.taken += float64(tokens)
	g.correct(t, 1, float64(tokens))
	return t
}

func (g *given) correct(t *tally, requests, tokens float64) {
	g.requests.used += requests
	g.tokens.used += tokens
	t.Requests += requests
	t.Tokens += tokens
	t.changed = g.of.demand
}

// correct adds amounts to what a call has used; negative amounts lower it.
func (c *Governor) correct(w *waiter, requests, tokens float64) {
	if w.use != nil {
		w.limiter.given.correct(w.use, requests, tokens)
	}
}

// reserve adds the estimate of an admitted call.
func (t *joint) reserve(e estimate) {
	if t != nil {
		t.taken.Cost += e.cost
		t.taken.Tokens += e.tokens
	}
}

// Mode selects where answers come from.
type Mode uint8

// The modes of a run.
const (
	Normal  Mode = iota // cached responses are used, new ones are cached
	Offline             // only cached responses: no call is admitted
	Refresh             // responses that earlier runs cached are asked for again and replaced
)

// Options configure New.
type Options struct {
	Cache Responses // stores responses of services by the keys of KeyOf; nil: nothing is stored
	// Profiles stores the profiles of the models that stages ask; nil: nothing is stored.
	Profiles *Profiles
	Mode     Mode
	Budget   pipeline.Budget
	Log      *slog.Logger // logs when services go down and come back
	// Waiting reports the Governor's Waits and learns of every answered call; may be nil.
	Waiting *terminal.WaitReporter
}

// Governor controls the calls of all stages of one run.
type Governor struct {
	ctx     context.Context // ends with the run
	options Options

	mu       sync.Mutex
	spent    error // why all stages have stopped: the budget is used up
	budget   budget
	inFlight int // of all limiters
	flying   map[*waiter]bool
	limiters []*limiter
	breakers map[string]*breaker
	stages   map[string]*stage
	wake     *time.Timer
	together *joint // nil: the Governor has its own limits
}

// New creates the Governor of a run. After ctx ends it admits no call, even if a call waits only
// until another one is cancelled.
func New(ctx context.Context, o Options) *Governor {
	return &Governor{
		ctx: ctx, options: o, budget: budget{Budget: o.Budget},
		flying: map[*waiter]bool{}, breakers: map[string]*breaker{}, stages: map[string]*stage{},
	}
}

// After this many denied calls in a row a stage is stopped, because the service would deny further
// calls, too.
const (
	deniedAtOnce = 5  // before the first served call
	deniedInARow = 25 // after one: a key may expire, but a single denial may be due to its text
)

// stop ends the calls of a stage whose service is down or denies them, with an error of
// sdk.CodeStopped. Other stages continue.
func (c *Governor) stop(h *host, err error) {
	h.stage.stopped = &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%s: %w", h.name, err)}
	c.refuse(h.stage.stopped, func(s *stage) bool { return s == h.stage })
}

// Again restarts the stages that were stopped because their service stayed down or denied their
// calls. It reports whether there were any. A run with a used-up budget stays stopped.
func (c *Governor) Again() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	any := false
	for _, s := range c.stages {
		if s.stopped != nil {
			s.stopped, s.denied, any = nil, 0, true
		}
	}
	if now := time.Now(); any {
		for _, b := range c.breakers { // calls wait as if the service had just gone down
			b.since, b.busy = now, time.Time{}
		}
	}
	return any
}

// Refuses reports whether the Governor refuses every further call of a stage.
func (c *Governor) Refuses(stage string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stages[stage]
	return c.spent != nil || s != nil && s.stopped != nil
}

// refuse fails the waiting calls of the stages that of selects.
func (c *Governor) refuse(err error, of func(*stage) bool) {
	for _, g := range c.limiters {
		for at, q := range g.queues {
			for of(q.stage) && q.first() != nil {
				g.refuse(at, err)
			}
		}
	}
}

// noteTrouble records the service that last failed to answer a call of the stage.
func (c *Governor) noteTrouble(w *waiter, status sdk.Status) {
	switch status {
	case sdk.StatusBusy, sdk.StatusDown:
		w.host.stage.trouble = w.breaker
	case sdk.StatusOK:
		w.host.stage.trouble = nil
		c.options.Waiting.Answered(w.host.name)
	}
}

// finish records how a call ended, and returns what is known of it for certain.
func (c *Governor) finish(w *waiter, o sdk.Result) outcome.ServiceReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(w)
	c.end(w, o)
	c.noteTrouble(w, o.Status)
	plausible := w.call.Believes(o.Usage)
	if !plausible {
		w.breaker.reportImplausible(o)
		o.Usage = sdk.Usage{}
	}
	price := w.host.priceOf(w.call)
	took := estimate{cost: price.Of(o.Usage), tokens: int64(o.Usage.InputTokens + o.Usage.OutputTokens)}
	if took.tokens > 0 {
		w.limiter.tokens.correct(w.tokens, float64(took.tokens))
		c.correct(w, 0, float64(took.tokens-int64(w.call.Tokens)))
		w.breaker.reports = true
	} else if !plausible || o.Lost || o.Status == sdk.StatusLeft || o.Status == sdk.StatusOK && !w.breaker.reports {
		// The cost is unknown, and the call may have to be paid for.
		took = w.estimate
	}
	c.budget.spend(took.cost, took.tokens)
	w.host.stage.count(o, price, w.call.Alternative)
	if s := w.host.stage; w.host.needed() && !w.call.Alternative && o.Status == sdk.StatusDenied && s.stopped == nil {
		switch {
		case !s.served && s.denied >= deniedAtOnce:
			c.stop(w.host, fmt.Errorf("none of its calls was served: %s", o.Reason))
		case s.denied >= deniedInARow:
			c.stop(w.host, fmt.Errorf("its last %d calls were denied: %s", s.denied, o.Reason))
		}
	}
	c.dispatch()
	return outcome.ServiceReply{Status: o.Status, Usage: o.Usage, Cost: price.Of(o.Usage)}
}

// Stage describes a stage that calls services.
type Stage struct {
	Name  string          // name of its block: "sample.llm"; stages of one name are counted together
	Kind  sdk.Kind        // with Use, part of the cache keys
	Use   string          // the plugin stage
	Limit *pipeline.Limit // nil: one limit per endpoint, shared by all stages without a limit block
	Price *pipeline.Price // nil: free
	// Required says that no other stage takes over the items that this one fails. Its calls wait
	// for a service that is down. If the service stays down or serves no call, the stage is
	// stopped, and a resumed run asks for the rest.
	Required bool
	// Observe receives the stage's requests and its answers from the cache, labelled with Pipeline
	// and Model; nil: they are not reported.
	Observe         outcome.Observer
	Pipeline, Model string
}

// host is the sdk.Host of a stage.
type host struct {
	governor *Governor
	stage    *stage
	name     string // of its block
	title    string // kind and plugin, for people who inspect the cache
	kind     sdk.Kind
	use      string
	limit    *pipeline.Limit
	price    pipeline.Price
	required bool
	observe  outcome.Observer
	about    outcome.ServiceRequest // fields that all its requests share; without the endpoint

	mu   sync.Mutex
	kept map[sdk.Key]bool // keys that this run has cached, if it ignores older responses
}

// Stage returns the host of a stage.
func (c *Governor) Stage(s Stage) sdk.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stages[s.Name] == nil {
		c.stages[s.Name] = &stage{}
	}
	c.stages[s.Name].relaxed, c.stages[s.Name].covered = false, false
	h := &host{
		governor: c, name: s.Name, stage: c.stages[s.Name], title: fmt.Sprintf("%s.%s", s.Kind, s.Use), kind: s.Kind, use: s.Use,
		limit: s.Limit, required: s.Required, kept: map[sdk.Key]bool{},
		observe: outcome.ObserverOr(s.Observe), about: outcome.ServiceRequest{Pipeline: s.Pipeline, Stage: s.Name, Use: s.Use, Model: s.Model, Kind: s.Kind},
	}
	if s.Price != nil {
		h.price = *s.Price
	}
	return h
}

// Relax makes a stage no longer required: from now on another stage takes over the items that it
// fails.
func (c *Governor) Relax(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stages[name]; s != nil {
		s.relaxed = true
		c.dispatch()
	}
}

// Cover notes that other stages answer the items of the named stages while a service is down, and
// that these items are asked again later. Calls of the named stages do not wait for a service that
// is down, and a circuit opens as soon as its service cannot be reached.
func (c *Governor) Cover(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if s := c.stages[name]; s != nil {
			s.covered = true
		}
	}
	c.dispatch()
}

// TryAll allows every service that is down a trial call at once, when that is its last chance.
func (c *Governor) TryAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.breakers {
		b.retry = time.Time{}
	}
	c.dispatch()
}

// waits reports whether calls of the stage wait for a service that is down.
func (h *host) waits() bool { return h.needed() && !h.stage.covered }

// needed reports whether no other stage takes over the stage's items for good.
func (h *host) needed() bool { return h.required && !h.stage.relaxed }

// KeyOf returns the cache key of a stage's value. Plugins cannot see each other's values.
func KeyOf(kind sdk.Kind, use string, key sdk.Key) sdk.Key {
	return sdk.KeyOf(string(kind), use, string(key[:]))
}

func (h *host) key(key sdk.Key) sdk.Key { return KeyOf(h.kind, h.use, key) }

// CacheGet implements sdk.Host.
func (h *host) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	if h.governor.options.Cache == nil {
		return make([][]byte, len(keys)), ctx.Err()
	}
	own := make([]sdk.Key, len(keys))
	for i, key := range keys {
		own[i] = h.key(key)
	}
	values, err := h.look(ctx, own)
	if err != nil {
		return nil, err
	}
	hits := 0
	for _, value := range values {
		if value != nil {
			hits++
		}
	}
	if hits > 0 {
		h.observe.CacheHits(h.about.Pipeline, h.name, hits)
	}
	h.governor.mu.Lock()
	defer h.governor.mu.Unlock()
	h.stage.CacheHits += hits
	return values, nil
}

func (h *host) putHere(key sdk.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept[key]
}

// CachePut implements sdk.Host. It ignores ctx: a response that arrives after its caller has given
// up has still been paid for.
func (h *host) CachePut(_ context.Context, key sdk.Key, value []byte) error {
	if h.governor.options.Cache == nil {
		return nil
	}
	key = h.key(key)
	keep := h.governor.options.Cache.Add // the first response stays if another run asked at the same time
	if h.governor.options.Mode == Refresh {
		keep = h.governor.options.Cache.Put
	}
	if err := keep(key, h.title, value); err != nil {
		return err
	}
	if h.governor.options.Mode == Refresh {
		h.mu.Lock()
		h.kept[key] = true
		h.mu.Unlock()
	}
	h.governor.mu.Lock()
	defer h.governor.mu.Unlock()
	h.stage.CachePuts++
	return nil
}

// Profile implements sdk.Host.
func (h *host) Profile(_ context.Context, endpoint, model string) (json.RawMessage, error) {
	if h.governor.options.Profiles == nil {
		return nil, nil
	}
	return h.governor.options.Profiles.Get(endpoint, model)
}

// KeepProfile implements sdk.Host.
func (h *host) KeepProfile(_ context.Context, endpoint, model string, profile json.RawMessage) error {
	if h.governor.options.Profiles == nil {
		return nil
	}
	return h.governor.options.Profiles.Put(endpoint, model, profile)
}

var errOffline = errors.New("its response is not in the cache and the run is offline; run it online to ask for it")

// Acquire implements sdk.Host.
func (h *host) Acquire(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	if h.governor.options.Mode == Offline {
		if h.kind == sdk.KindEnrich {
			return nil, sdk.Invalid(errOffline) // the passage stays unchanged, and the build continues
		}
		return nil, &sdk.Error{Code: sdk.CodeUnavailable, Err: errOffline}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call.Tokens = max(call.Tokens, 0)
	about := h.about
	about.Endpoint = call.Endpoint
	sent, done := h.observe.Request(ctx, about)
	c := h.governor
	c.mu.Lock()
	w := c.enqueue(h, call)
	c.mu.Unlock()
	select {
	case err := <-w.verdict:
		if err != nil {
			done(outcome.ServiceReply{Err: err})
			return nil, err
		}
		sent()
		var once sync.Once
		return func(o sdk.Result) { once.Do(func() { done(c.finish(w, o)) }) }, nil
	case <-ctx.Done():
		c.withdraw(w)
		done(outcome.ServiceReply{Err: ctx.Err()})
		return nil, ctx.Err()
	}
}
