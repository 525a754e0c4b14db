package knowledge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

const (
	embedBatch = 256             // rows per call of the embedder, at most
	batchBytes = 8 << 20         // of text per call, at most: it has to fit a message
	inFlight   = 2               // batches under way: one is embedded while one is stored
	checkpoint = 5 * time.Second // after which a first build is committed, to go on from after a kill
)

// put makes the entries of units, embeds and stores them; a plan only makes
// them. It returns the ids of entries that the units no longer have. A first
// build is committed now and then, to go on from after a kill, never in the middle
// of a unit; later changes appear all at once.
func (b *builder) put(ctx context.Context, units []unit, first bool) (surplus []string, err error) {
	if len(b.enrichers) > 0 && !b.fitted && !b.options.Plan {
		b.streaming = "enriching and embedding"
	}
	b.unusable, b.changed = nil, map[string]bool{}
	b.Report.Unenriched, b.Report.FirstUnenriched = 0, InvalidRow{} // what a fit found is found again
	produce := func(ctx context.Context, f func(batch) error) error {
		err := b.stream(ctx, units, embedBatch, func(m batch) error {
			surplus = append(surplus, b.compare(m)...)
			return f(m)
		})
		for id, old := range b.old { // what turned out to be unusable, or is gone since it was listed
			surplus = append(surplus, b.idsOf(id, old.numbers)...)
		}
		return err
	}
	if b.options.Plan {
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
		if e := new(endedError); errors.As(err, &e) {
			ended, err = err, nil // what was made before is stored
		}
		return err
	})
	g.Go(func() error {
		defer close(embedded)
		for m := range made {
			if len(m.entries) > 0 {
				vectors, failed, err := b.embed(ctx, m)
				if err != nil {
					return fmt.Errorf("embed: %w", err)
				}
				for i := range m.entries {
					m.entries[i].Vector = vectors[i]
				}
				m.entries = without(m.entries, failed)
			}
			if err := send(ctx, embedded, m); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		done, committed := 0, time.Now()
		for m := range embedded {
			if len(m.entries) > 0 {
				err := b.store.Put(ctx, b.main, m.entries)
				if err := b.refused.takeRows(m.entries, err); err != nil {
					return written("store", err)
				}
			}
			done += len(m.units)
			if b.streaming == "" {
				b.tell("embedding", done, len(units))
			}
			if first && m.whole && time.Since(committed) > checkpoint {
				if err := b.commit(ctx); err != nil {
					return err
				}
				committed = time.Now()
			}
		}
		return nil
	})
	if err = g.Wait(); err != nil || ended == nil {
		return surplus, err
	}
	if first {
		if err := b.commit(whole); err != nil {
			return nil, err
		}
	}
	return nil, ended
}

// embed returns the vectors of a batch, and which of its rows failed alone. What may
// pass is tried again: one lost reply is not to end a build of hours.
func (b *builder) embed(ctx context.Context, m batch) (vectors [][]float32, failed sdk.RowErrors, err error) {
	texts := m.texts()
	vectors = make([][]float32, len(texts))
	errs, err := b.embeds.do(ctx, len(texts), func(ctx context.Context, at []int) error {
		found, err := b.embedder.Embed(ctx, sdk.RolePassage, pick(texts, at))
		return spread(vectors, at, found, err)
	})
	if err != nil {
		return nil, nil, err
	}
	return vectors, b.refused.take(m.entries, errs), nil
}

func (b *builder) tell(doing string, done, total int) {
	if b.options.Progress != nil {
		b.options.Progress(doing, done, total)
	}
}

func send[T any](ctx context.Context, to chan<- T, value T) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
