package knowledge

import (
	"context"
	"errors"
)

// enriched calls f with documents in order, and with what each enricher adds to
// them. Only a window of them is held.
//
// Where an enricher cannot go on, no more is asked for, but what is being answered
// is waited for: it has been paid for.
func (b *builder) enriched(ctx context.Context, units []unit, f func(chunked, []addition) error) error {
	if len(b.enrichers) == 0 {
		return b.documents(ctx, units, func(d chunked) error { return f(d, nil) })
	}
	passages, groups := sizes(b.enrichers)
	producing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	room := newWindow(groups, batchBytes)
	queue := make(chan *group, room.most())
	var failed, produced error
	go func() {
		defer close(queue)
		begun := make([]chan struct{}, len(b.enrichers))
		produced = b.grouped(producing, units, passages, func(g *group) error {
			if err := room.enter(producing, g.bytes); err != nil {
				return err
			}
			g.start(working, producing, b.enrichers, begun, stop)
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
				if ended := new(endedError); !errors.As(failed, &ended) {
					cancel()
				}
			}
		}
		room.leave(g.bytes)
	}
	if failed != nil {
		return failed
	}
	return produced
}

// grouped calls f with the documents of units, in groups of at most so many
// passages and about batchBytes bytes.
func (b *builder) grouped(ctx context.Context, units []unit, passages int, f func(*group) error) error {
	pending := &group{}
	flush := func() error {
		full := pending
		pending = &group{}
		if len(full.documents) == 0 {
			return nil
		}
		return f(full)
	}
	err := b.documents(ctx, units, func(d chunked) error {
		if pending.passages+len(d.chunks) > passages || pending.bytes+len(d.Text) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		pending.documents = append(pending.documents, d)
		pending.passages, pending.bytes = pending.passages+len(d.chunks), pending.bytes+len(d.Text)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}
