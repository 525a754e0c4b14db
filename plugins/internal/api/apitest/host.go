// Package apitest is a Host for tests of stages that call services: it keeps
// values in memory, and notes what the stage told it.
package apitest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// Host is an engine's end in memory. Its zero value is ready.
type Host struct {
	Refuse error // that Admit returns
	Full   error // that Keep returns

	mu       sync.Mutex
	kept     map[sdk.Key][]byte
	calls    []sdk.Call
	outcomes []sdk.Outcome
	events   []string
	open     int
	refused  int
}

var _ sdk.Host = (*Host)(nil)

// Recall implements sdk.Host.
func (h *Host) Recall(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make([][]byte, len(keys))
	for i, key := range keys {
		found[i] = h.kept[key]
	}
	return found, ctx.Err()
}

// Keep implements sdk.Host.
func (h *Host) Keep(ctx context.Context, key sdk.Key, value []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.Full != nil {
		return h.Full
	}
	if h.kept == nil {
		h.kept = map[sdk.Key][]byte{}
	}
	h.kept[key] = slices.Clone(value)
	h.events = append(h.events, "keep")
	return nil
}

// Admit implements sdk.Host.
func (h *Host) Admit(ctx context.Context, call sdk.Call) (func(sdk.Outcome), error) {
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
	h.events = append(h.events, "admit")
	h.open++
	return func(o sdk.Outcome) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.outcomes = append(h.outcomes, o)
		h.events = append(h.events, "done")
		h.open--
	}, nil
}

// Calls are those that were admitted.
func (h *Host) Calls() []sdk.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Refused is how many calls were not admitted.
func (h *Host) Refused() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// Outcomes are the ends of calls, in the order in which they came. It fails the
// test where a call has no end.
func (h *Host) Outcomes(t testing.TB) []sdk.Outcome {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open != 0 {
		t.Errorf("%d calls have no outcome", h.open)
	}
	return slices.Clone(h.outcomes)
}

// Events are what the stage did, in order: "admit", "keep" and "done".
func (h *Host) Events() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// Spent is what all calls cost.
func (h *Host) Spent(t testing.TB) sdk.Usage {
	var sum sdk.Usage
	for _, o := range h.Outcomes(t) {
		sum.Add(o.Usage)
	}
	return sum
}

// Kept returns the kept values by their keys.
func (h *Host) Kept() map[sdk.Key][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.kept)
}

// Forget drops a kept value.
func (h *Host) Forget(key sdk.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.kept, key)
}
