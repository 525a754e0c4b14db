package governor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Stage identifies a caller.
type Stage struct {
	Name  string          // of its block: "sample.llm"; stages of one name are counted together
	Kind  sdk.Kind        // with Use, part of the cache keys
	Use   string          // the plugin stage
	Limit *pipeline.Limit // nil: one per endpoint, shared by all stages without a limit
	Price *pipeline.Price // nil: free
	// Required says that nothing takes over the items that the stage fails on. Its calls
	// wait for a service that is down; if it stays down or serves none of the stage's
	// calls, the stage is stopped, and a resumed run asks for the rest.
	Required bool
	// Observe hears of the stage's requests, and of answers from the cache, under the names Pipeline
	// and Model; nil: nobody listens.
	Observe         observe.Observer
	Pipeline, Model string
}

// host is the sdk.Host of a stage.
type host struct {
	governor *Governor
	stage    *stage
	name     string // of its block
	title    string // its kind and plugin, for people who look into the cache
	kind     sdk.Kind
	use      string
	limit    *pipeline.Limit
	price    pipeline.Price
	required bool
	observe  observe.Observer
	about    observe.Request // of each of its requests, without the endpoint

	mu   sync.Mutex
	kept map[sdk.Key]bool // cached by this run, where older responses are not used
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
		observe: observe.Or(s.Observe), about: observe.Request{Pipeline: s.Pipeline, Stage: s.Name, Use: s.Use, Model: s.Model, Kind: s.Kind},
	}
	if s.Price != nil {
		h.price = *s.Price
	}
	return h
}

// Relax makes a stage one that is not required any more: what takes over its items does so
// from now on.
func (c *Governor) Relax(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stages[name]; s != nil {
		s.relaxed = true
		c.dispatch()
	}
}

// Cover notes that others answer the items of some stages while their services do not serve them, and
// that these are asked again: calls of the stages do not wait for a service that is down, and
// a circuit opens as soon as one cannot be reached.
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

// TryAll lets services that are down be tried at once, when it is their last chance.
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

// needed reports whether nothing takes over the items of the stage for good.
func (h *host) needed() bool { return h.required && !h.stage.relaxed }

// KeyOf is a stage's key in the cache, where plugins do not see each other's values.
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

// CachePut implements sdk.Host. It ignores ctx: a response that arrives after its caller
// has given up has been paid for.
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
			return nil, sdk.Invalid(errOffline) // the passage stays as it is, and the build goes on
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
			done(observe.Reply{Err: err})
			return nil, err
		}
		sent()
		var once sync.Once
		return func(o sdk.Result) { once.Do(func() { done(c.finish(w, o)) }) }, nil
	case <-ctx.Done():
		c.withdraw(w)
		done(observe.Reply{Err: ctx.Err()})
		return nil, ctx.Err()
	}
}
