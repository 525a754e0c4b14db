package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Stage says who calls.
type Stage struct {
	Name  string          // of its block: "sample.llm". What has one name is counted together
	Kind  sdk.Kind        // with Use, what its answers are kept under
	Use   string          // the plugin stage
	Limit *pipeline.Limit // nil: one per endpoint, shared by all stages without
	Price *pipeline.Price // nil: nothing
	// Sole says that nothing takes over what the stage fails on. Its calls then
	// wait for a service that is down, and where it stays away, or serves none of
	// the stage's calls, the stage is stopped: a resumed run asks for what it lacks.
	Sole bool
}

// host is the sdk.Host of a stage.
type host struct {
	control *Control
	stage   *stage
	name    string // of its block
	about   string // its kind and plugin, for the keys of the cache and for who looks into it
	kind    sdk.Kind
	use     string
	limit   *pipeline.Limit
	price   pipeline.Price
	sole    bool

	mu   sync.Mutex
	kept map[sdk.Key]bool // by this run, where older ones are not asked for
}

// Stage returns the host of a stage.
func (c *Control) Stage(s Stage) sdk.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stages[s.Name] == nil {
		c.stages[s.Name] = &stage{}
	}
	h := &host{
		control: c, name: s.Name, stage: c.stages[s.Name], about: fmt.Sprintf("%s.%s", s.Kind, s.Use), kind: s.Kind, use: s.Use,
		limit: s.Limit, sole: s.Sole, kept: map[sdk.Key]bool{},
	}
	if s.Price != nil {
		h.price = *s.Price
	}
	return h
}

// key is what the cache knows a stage's key by: plugins do not see each
// other's values.
func (h *host) key(key sdk.Key) sdk.Key { return sdk.KeyOf(string(h.kind), h.use, string(key[:])) }

// CacheGet implements sdk.Host.
func (h *host) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	values := make([][]byte, len(keys))
	if h.control.options.Cache == nil {
		return values, ctx.Err()
	}
	hits := 0
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key = h.key(key)
		if h.control.options.Mode == Refresh && !h.isKept(key) {
			continue
		}
		if value, ok := h.control.options.Cache.Get(key); ok {
			values[i] = value
			hits++
		}
	}
	h.control.mu.Lock()
	defer h.control.mu.Unlock()
	h.stage.Recalled += hits
	return values, nil
}

func (h *host) isKept(key sdk.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept[key]
}

// CachePut implements sdk.Host. It keeps an answer also for a caller that has given
// up: it has been paid for.
func (h *host) CachePut(_ context.Context, key sdk.Key, value []byte) error {
	if h.control.options.Cache == nil {
		return nil
	}
	key = h.key(key)
	keep := h.control.options.Cache.Add // another run may have asked at the same time: then its answer is the one
	if h.control.options.Mode == Refresh {
		keep = h.control.options.Cache.Put
	}
	if err := keep(key, h.about, value); err != nil {
		return err
	}
	if h.control.options.Mode == Refresh {
		h.mu.Lock()
		h.kept[key] = true
		h.mu.Unlock()
	}
	h.control.mu.Lock()
	defer h.control.mu.Unlock()
	h.stage.Kept++
	return nil
}

var errOffline = errors.New("its answer is not in the cache; run without --offline to ask for it")

// Acquire implements sdk.Host.
func (h *host) Acquire(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	if h.control.options.Mode == Offline {
		return nil, sdk.Invalid(errOffline)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	call.Tokens = max(call.Tokens, 0)
	c := h.control
	c.mu.Lock()
	w := c.enter(h, call)
	c.mu.Unlock()
	select {
	case err := <-w.verdict:
		if err != nil {
			return nil, err
		}
		var once sync.Once
		return func(o sdk.Result) { once.Do(func() { c.finish(w, o) }) }, nil
	case <-ctx.Done():
		c.leave(w)
		return nil, ctx.Err()
	}
}
