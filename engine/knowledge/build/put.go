package build

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/knowledge/units"
)

const (
	embedBatch = 256             // rows per call of the embedder, at most
	inFlight   = 2               // batches under way: one is embedded while one is stored
	checkpoint = 5 * time.Second // after which a first build is committed, to resume after a kill
)

// put makes the entries of units, embeds and stores them; a plan only makes
// them. It returns the ids of entries that the units no longer have. A first
// build is committed now and then, never in the middle of a unit; later changes appear
// all at once.
func (w *walk) put(ctx context.Context, stock *units.Stock, todo []units.Unit, first bool) (surplus []string, err error) {
	produce := func(ctx context.Context, f func(batch) error) error {
		err := w.batches(ctx, todo, embedBatch, func(m batch) error {
			for _, u := range m.units {
				changed, gone := stock.Replace(u.id, u.entries)
				w.Report.Changed += changed
				w.Report.Added += u.entries - changed
				surplus = append(surplus, gone...)
			}
			return f(m)
		})
		surplus = append(surplus, stock.Rest()...)
		return err
	}
	if w.Plan {
		err = produce(ctx, func(batch) error { return nil })
		return surplus, err
	}
	made, embedded := make(chan batch, inFlight), make(chan batch, inFlight)
	whole := ctx
	g, ctx := errgroup.WithContext(ctx)
	var ended error
	g.Go(func() error {
		defer close(made)
		err := produce(ctx, func(m batch) error { return send(ctx, made, m) })
		if e := new(enrich.EndedError); errors.As(err, &e) {
			ended, err = err, nil // what was made before is stored
		}
		return err
	})
	g.Go(func() error {
		defer close(embedded)
		for m := range made {
			if err := w.embed(ctx, &m); err != nil {
				return fmt.Errorf("embed: %w", err)
			}
			if err := send(ctx, embedded, m); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error { return w.store(ctx, embedded, todo, first) })
	if err = g.Wait(); err != nil || ended == nil {
		return surplus, err
	}
	if first {
		if err := w.commit(whole); err != nil {
			return nil, err
		}
	}
	return nil, ended
}

// store puts batches into the store, which are those of some units.
func (w *walk) store(ctx context.Context, batches <-chan batch, of []units.Unit, first bool) error {
	far, committed := w.measure("embedding", of), time.Now()
	for m := range batches {
		if len(m.entries) > 0 {
			if err := w.take(ctx, m.entries); err != nil {
				return err
			}
		}
		if w.doing == "" {
			ended := make([]string, len(m.units))
			for i, u := range m.units {
				ended[i] = u.id
			}
			w.Progress.Report(far.add(m.entries, ended...))
		}
		if first && m.whole && time.Since(committed) > checkpoint {
			if err := w.commit(ctx); err != nil {
				return err
			}
			committed = time.Now()
		}
	}
	return nil
}

func send[T any](ctx context.Context, to chan<- T, value T) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
