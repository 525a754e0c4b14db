package enrich

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/sdk/wire"
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
	most, groups := all.sizes()
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
		produced = grouped(producing, most, produce, func(g *group) error {
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

// size is how much a group has at most, unless it is one document.
type size struct{ passages, bytes int }

// gathered is what a group has at most for an enricher that asks in batches: as much as such a
// batch takes, and half of what a message holds.
var gathered = size{50_000, wire.MaxMessage / 2}

// sideBySide is how many groups are worked on at a time where an enricher asks in batches.
const sideBySide = 4

// sizes returns the size of groups, and how many the enrichers work on at a time: that which
// the one that wants the smallest has. Where one asks in batches, groups are as large as those, and
// the others get them in parts.
func (all Enrichers) sizes() (most size, groups int) {
	gather := slices.ContainsFunc(all, (*enricher).gathers)
	if most = (size{defaultBatch, stages.BatchBytes}); gather {
		most = gathered
	}
	for _, e := range all {
		groups = max(groups, cap(e.slots))
		if e.gathers() == gather {
			most.passages = min(most.passages, e.size().passages)
		}
	}
	if gather {
		groups = sideBySide
	}
	return most, groups
}

// gathers reports whether the enricher asks in batches, here and now.
func (e *enricher) gathers() bool { return e.process != nil && e.stage.Gathers() }

// size is what a call of the enricher has at most. Where a service is asked, that is one
// document, unless its results may come later.
func (e *enricher) size() size {
	switch {
	case e.gathers():
		return size{cmp.Or(e.stage.Batch, gathered.passages), gathered.bytes}
	case e.stage.Info.Network && !e.stage.Info.Pends:
		return size{1, stages.BatchBytes}
	}
	return size{cmp.Or(e.stage.Batch, e.stage.Info.Batch, defaultBatch), stages.BatchBytes}
}

// fits reports whether a document goes along with others.
func (s size) fits(passages, bytes int, d units.Document) bool {
	return passages+len(d.Chunks) <= s.passages && bytes+len(d.Text) <= s.bytes
}

// grouped calls f with documents in groups of a size.
func grouped(ctx context.Context, most size, produce func(context.Context, func(units.Document) error) error, f func(*group) error) error {
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
		if !most.fits(pending.passages, pending.bytes, d) {
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
