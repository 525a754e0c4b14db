package build

import (
	"context"
	"errors"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/sdk"
)

// take puts the entries of a batch into the store, but for those that end its process.
func (w *walk) take(ctx context.Context, entries []sdk.Entry) error {
	var storable []sdk.Entry
	for _, e := range entries {
		if why := w.unstorable[e.ID]; why != nil {
			w.refused.add(e.ID, why)
		} else {
			storable = append(storable, e)
		}
	}
	if len(storable) == 0 {
		return nil
	}
	err := w.refused.take(storable, w.Store.Put(ctx, w.Collection, storable))
	if errors.Is(err, sdk.ErrCrashed) && w.blame(ctx, storable) {
		return &BusyError{err: err, Blamed: true}
	}
	return written("store", err)
}

// blame notes which entries of a batch end the store's process, and reports whether
// there are any. What was not committed is lost with each process, so that it puts
// them into a collection of their own, which is never committed. The build then begins
// again without them.
func (w *walk) blame(ctx context.Context, entries []sdk.Entry) (found bool) {
	trial := generation.Trial(w.Collection)
	schema := sdk.Schema{Dimension: w.Embedder.Dimension(), Analyzer: w.Block.Analyzer}
	try := func(ctx context.Context, some []sdk.Entry) error {
		_, err := w.Store.Open(ctx, trial, schema)
		if err == nil {
			err = w.Store.Put(ctx, trial, some)
		}
		return err
	}
	answered := false
	errs := retry.Work{Stage: "store." + w.Block.Name, Waits: w.Later.Waits, Call: func(ctx context.Context, at []int) error {
		some := make([]sdk.Entry, len(at))
		for i, n := range at {
			some[i] = entries[n]
		}
		err := try(ctx, some)
		answered = answered || err == nil || errors.As(err, new(sdk.RowErrors))
		return err
	}}.Do(ctx, len(entries))
	if !answered { // is it the store that no entry can be put into?
		known := sdk.Entry{ID: probe, Text: probe, Vector: make([]float32, schema.Dimension)}
		answered = try(ctx, []sdk.Entry{known}) == nil
	}
	for i, err := range errs {
		if answered && errors.Is(err, sdk.ErrCrashed) {
			if w.unstorable == nil {
				w.unstorable = map[string]error{}
			}
			w.unstorable[entries[i].ID], found = err, true
		}
	}
	_ = w.Store.Drop(ctx, trial) // it goes with its generation at the latest
	return found
}
