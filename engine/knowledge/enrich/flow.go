package enrich

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/knowledge/units"
)

// defaultBatch is how many passages a call has at most where the stage has no opinion.
const defaultBatch = 256

// Each calls f with the documents that produce gives, in that order, and with what
// each enricher adds to them. Only a window of them is held.
//
// Where an enricher cannot continue, no more is asked for, but what is being answered
// is waited for: it has been paid for.
func (all Enrichers) Each(ctx context.Context, produce func(context.Context, func(units.Document) error) error, f func(units.Document, []Additions) error) error {
	if len(all) == 0 {
		return produce(ctx, func(d units.Document) error { return f(d, nil) })
	}
	passages, groups := all.sizes()
	producing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	room := semaphore.NewWeighted(stages.BatchBytes)
	queue := make(chan *group, ahead*groups)
	var failed, produced error
	go func() {
		defer close(queue)
		begun := make([]chan struct{}, len(all))
		produced = grouped(producing, passages, produce, func(g *group) error {
			g.room = roomOf(g.bytes, groups)
			if err := room.Acquire(producing, g.room); err != nil {
				return err
			}
			g.start(working, producing, all, begun, stop)
			queue <- g // there is room
			return nil
		})
	}()
	for g := range queue {
		<-g.done
		if failed == nil {
			if failed = g.err; failed == nil {
				failed = g.each(f)
			}
			if failed != nil {
				stop(failed)
				if ended := new(EndedError); !errors.As(failed, &ended) {
					cancel()
				}
			}
		}
		room.Release(g.room)
	}
	if failed != nil {
		return failed
	}
	return produced
}

// ahead is how many times as many groups are held as are worked on: one that takes
// long does not hold up those behind it until so many of them wait for it.
const ahead = 4

// roomOf is how much of stages.BatchBytes a group takes: at most so much that as many
// have room as are worked on, however large they are, and at least so much that ahead
// times as many fill it.
func roomOf(bytes, groups int) int64 {
	return int64(max(min(bytes, stages.BatchBytes/groups), stages.BatchBytes/(ahead*groups)))
}

// sizes returns how many passages a group has at most, unless it is one document,
// and how many groups the enrichers work on at a time. Where a service is asked, a
// group is one document, unless its results may come later.
func (all Enrichers) sizes() (passages, groups int) {
	passages = defaultBatch
	for _, e := range all {
		groups = max(groups, cap(e.slots))
		passages = min(passages, cmp.Or(e.stage.Batch, e.stage.Info.Batch, defaultBatch))
		if e.stage.Info.Network && !e.stage.Info.Pends {
			passages = 1
		}
	}
	return passages, groups
}

// grouped calls f with documents in groups of at most so many passages and about
// stages.BatchBytes bytes.
func grouped(ctx context.Context, passages int, produce func(context.Context, func(units.Document) error) error, f func(*group) error) error {
	pending := &group{}
	flush := func() error {
		full := pending
		pending = &group{}
		if len(full.documents) == 0 {
			return nil
		}
		return f(full)
	}
	err := produce(ctx, func(d units.Document) error {
		if pending.passages+len(d.Chunks) > passages || pending.bytes+len(d.Text) > stages.BatchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		pending.documents = append(pending.documents, d)
		pending.passages, pending.bytes = pending.passages+len(d.Chunks), pending.bytes+len(d.Text)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}
