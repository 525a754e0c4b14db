// Package apitest has what tests of built-in stages share: an sdk.Host that caches values in memory and records calls and
// their results, golden values, and a corpus to measure stores with.
package apitest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// Host is a Host in memory. Its zero value is ready.
type Host struct {
	Refuse error // the error of Acquire
	Full   error // the error of CachePut
	Probes bool  // no profile is stored, so stages probe models first; otherwise models have an empty profile

	mu       sync.Mutex
	cached   map[sdk.Key][]byte
	profiles map[string]json.RawMessage
	calls    []sdk.Call
	results  []sdk.Result
	events   []string
	open     int
	refused  int
}

var _ sdk.Host = (*Host)(nil)

// CacheGet implements sdk.Host.
func (h *Host) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make([][]byte, len(keys))
	for i, key := range keys {
		found[i] = h.cached[key]
	}
	return found, ctx.Err()
}

// CachePut implements sdk.Host.
func (h *Host) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.Full != nil {
		return h.Full
	}
	if h.cached == nil {
		h.cached = map[sdk.Key][]byte{}
	}
	h.cached[key] = slices.Clone(value)
	h.events = append(h.events, "cache")
	return nil
}

// Profile implements sdk.Host.
func (h *Host) Profile(ctx context.Context, endpoint, model string) (json.RawMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.profiles[endpoint+" "+model]; ok || h.Probes {
		return known, ctx.Err()
	}
	return json.RawMessage("{}"), ctx.Err()
}

// KeepProfile implements sdk.Host.
func (h *Host) KeepProfile(ctx context.Context, endpoint, model string, profile json.RawMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.profiles == nil {
		h.profiles = map[string]json.RawMessage{}
	}
	h.profiles[endpoint+" "+model] = slices.Clone(profile)
	return ctx.Err()
}

// Acquire implements sdk.Host.
func (h *Host) Acquire(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Refuse != nil {
		h.refused++
		return nil, h.Refuse
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.calls = append(h.calls, call)
	h.events = append(h.events, "acquire")
	h.open++
	return func(o sdk.Result) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.results = append(h.results, o)
		h.events = append(h.events, "release")
		h.open--
	}, nil
}

// Calls returns the permitted calls.
func (h *Host) Calls() []sdk.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Refused returns how many calls were not permitted.
func (h *Host) Refused() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// Results returns the results of calls, in the order of their release. A call that was not released fails the test.
func (h *Host) Results(t testing.TB) []sdk.Result {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open != 0 {
		t.Errorf("%d calls have no result", h.open)
	}
	return slices.Clone(h.results)
}

// Events returns what the stage did, in order: "acquire", "cache" and "release".
func (h *Host) Events() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// Spent returns the cost of all calls.
func (h *Host) Spent(t testing.TB) sdk.Usage {
	var sum sdk.Usage
	for _, o := range h.Results(t) {
		sum.Add(o.Usage)
	}
	return sum
}

// Cached returns the cached values by their keys.
func (h *Host) Cached() map[sdk.Key][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.cached)
}

// Forget drops a cached value.
func (h *Host) Forget(key sdk.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cached, key)
}
