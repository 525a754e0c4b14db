package knowledge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Open brings the store in step with the source and returns the knowledge,
// ready to be searched. Rows that cannot be used are in the report; an error
// means that there is nothing to search.
func Open(ctx context.Context, block *pipeline.Knowledge, stages Stages, o Options) (*Knowledge, error) {
	embedder, err := stages.Embedder(ctx, nil)
	if err != nil {
		return nil, err
	}
	store, err := stages.Store(ctx)
	if err != nil {
		return nil, err
	}
	var chunker Chunker
	if block.Chunk != nil {
		if chunker, err = stages.Chunker(ctx); err != nil {
			return nil, err
		}
	}
	enrichers, err := startEnrichers(ctx, block, stages, anyStage)
	if err != nil {
		return nil, err
	}
	// Before anything is learnt: what has learnt has a fingerprint of its own.
	name := collectionName(block, chunker, enrichers, embedder)
	origin := origin(block, chunker, enrichers, embedder)
	if o.Plan {
		for _, e := range enrichers {
			e.process = nil
		}
	}
	var source *rows
	for try := 1; ; try++ {
		k := &Knowledge{block: block, chunker: chunker, enrichers: enrichers, embedder: embedder, store: store, all: new(entries)}
		k.Report = Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}
		k.main, k.origin = name, origin
		k.centroids = labelsOf(k.main)
		b := newBuilder(k, stages, o, source)
		err := b.build(ctx)
		var busy *busyError
		if err == nil {
			k.content = b.content()
			if b.completed {
				k.retire(ctx)
			}
			return k, nil
		}
		if !errors.As(err, &busy) || !busy.locked && try == maxTries {
			return nil, fmt.Errorf("knowledge %q: %w", block.Name, err)
		}
		if try == 1 && o.Waiting != nil {
			o.Waiting(block.Name, busy.err)
		}
		// Where another process builds the same knowledge, little or nothing is
		// left to do once it is done; where the store's process ended, what it
		// had committed is still there.
		embedder, source = b.embedder, b.rows
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// maxTries is how often a build starts over that was not kept out by another
// one.
const maxTries = 10

// retryAfter is how long a builder waits for another one before it looks
// again.
const retryAfter = 300 * time.Millisecond

// busyError says that the store cannot be written to at the moment.
type busyError struct {
	err    error
	locked bool // by another process, which it names
}

func (e *busyError) Error() string { return e.err.Error() }

func (e *busyError) Unwrap() error { return e.err }

// written wraps the error of a write to the store.
func written(what string, err error) error {
	if err == nil {
		return nil
	}
	if coded := new(sdk.Error); errors.As(err, &coded) && coded.Code == sdk.CodeTransient {
		return &busyError{err, coded.RetryAfter > 0}
	}
	return fmt.Errorf("%s: %w", what, err)
}
