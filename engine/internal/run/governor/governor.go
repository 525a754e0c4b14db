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
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

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
	// Waiting reports the Governor's Waits, and is notified of every answered call; may be nil.
	Waiting *progress.WaitReporter
}

// Governor controls the calls of all stages of one run.
type Governor struct {
	ctx     context.Context // ends with the run
	options Options

	mu       sync.Mutex
	spent    error // why all stages have stopped: the budget is used up
	budget   budget
	inFlight int // calls in flight of all limiters
	flying   map[*waiter]bool
	limiters []*limiter
	breakers map[string]*breaker
	stages   map[string]*stage
	wake     *time.Timer
}

// New creates the Governor of a run. After ctx ends, it admits no calls, even if cancelled calls make
// room for queued ones.
func New(ctx context.Context, o Options) *Governor {
	return &Governor{
		ctx: ctx, options: o, budget: budget{Budget: o.Budget},
		flying: map[*waiter]bool{}, breakers: map[string]*breaker{}, stages: map[string]*stage{},
	}
}

// After this number of denied calls in a row a stage is stopped, because the service would deny
// further calls, too.
const (
	deniedAtOnce = 5  // before the first served call
	deniedInARow = 25 // after the first served call: a key may expire, but a single denial may be due to a text
)

// stop ends the calls of a stage whose service is down or denies them, with an error of
// sdk.CodeStopped. Other stages continue.
func (c *Governor) stop(h *host, err error) {
	h.stage.stopped = &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%s: %w", h.name, err)}
	c.refuse(h.stage.stopped, func(s *stage) bool { return s == h.stage })
}

// Again restarts the stages that were stopped because their service stayed down or denied their
// calls. It reports whether it restarted a stage. A run with a used-up budget stays stopped.
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

// refuse fails the waiting calls of the stages for which of returns true.
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

// finish records how a call ended, and returns what is known about it for certain.
func (c *Governor) finish(w *waiter, o sdk.Result) outcome.ServiceReply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(w)
	c.end(w, o)
	if g := w.limiter; !w.call.Batch {
		g.concurrency = g.pace.next(time.Now(), g.concurrency, o.Status, g.waiting())
	}
	c.noteTrouble(w, o.Status)
	plausible := w.call.Believes(o.Usage)
	if !plausible {
		w.breaker.reportImplausible(o)
		o.Usage = sdk.Usage{}
	}
	price := w.host.priceOf(w.call)
	reply := outcome.ServiceReply{Status: o.Status, Usage: o.Usage, Cost: price.Of(o.Usage)}
	w.host.stage.count(o, price, w.call.Alternative)
	took := amount{Cost: price.Of(o.Usage), Tokens: int64(o.Usage.InputTokens + o.Usage.OutputTokens)} //nolint:gosec // Believes bounds them
	if took.Tokens > 0 {
		w.limiter.tokens.correct(w.tokens, float64(took.Tokens))
		w.breaker.reports = true
	} else if !plausible || o.Lost || o.Status == sdk.StatusLeft || o.Status == sdk.StatusOK && !w.breaker.reports {
		// The cost is unknown, and the call may have to be paid for.
		took = w.estimate
	}
	c.budget.spending.amount = c.budget.spending.plus(took)
	if took.Tokens > 0 {
		c.budget.spending.calls++
	}
	if s := w.host.stage; w.host.needed() && !w.call.Alternative && o.Status == sdk.StatusDenied && s.stopped == nil {
		switch {
		case !s.served && s.denied >= deniedAtOnce:
			c.stop(w.host, fmt.Errorf("none of its calls was served: %s", o.Reason))
		case s.denied >= deniedInARow:
			c.stop(w.host, fmt.Errorf("its last %d calls were denied: %s", s.denied, o.Reason))
		}
	}
	c.dispatch()
	return reply
}

// Stage describes a stage that calls services.
type Stage struct {
	Name  string          // name of its block: "sample.llm"; stages of one name are counted together
	Kind  sdk.Kind        // with Use, part of the cache keys
	Use   string          // the plugin stage
	Limit *pipeline.Limit // nil: one limit per endpoint, shared by all stages without a limit block
	Price *pipeline.Price // nil: free
	// Required means that no other stage takes over the items that this stage fails. Its calls wait
	// for a service that is down. If the service stays down or serves no call, the stage is
	// stopped, and a resumed run asks about the remaining items.
	Required bool
	// Covered means that other stages answer the stage's items while its service is down (see
	// Cover).
	Covered bool
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
	kept map[sdk.Key]bool // keys that this run has cached, in a run that ignores older responses
}

// Stage returns the host of a stage.
func (c *Governor) Stage(s Stage) sdk.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stages[s.Name] == nil {
		c.stages[s.Name] = &stage{}
	}
	c.stages[s.Name].relaxed, c.stages[s.Name].covered = false, s.Covered
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

// Relax makes a stage no longer required: from now on another stage takes over the items that the
// stage fails.
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

// TryAll admits a trial call at once for every service that is down. The caller uses it as the last
// chance of these services.
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

// needed reports whether no other stage ever takes over the stage's items.
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
	keep := h.governor.options.Cache.Add // if another run asked at the same time, the first response stays
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
	w, err := c.await(ctx, h, call)
	if err != nil {
		done(outcome.ServiceReply{Err: err})
		return nil, err
	}
	sent()
	var once sync.Once
	return func(o sdk.Result) {
		once.Do(func() { done(c.finish(w, o)) })
	}, nil
}
