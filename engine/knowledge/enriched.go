package knowledge

import (
	"context"
	"errors"
)

// enriched calls f with documents in order, and with what each enricher adds to
// them. As many groups of documents are held as may be under way.
//
// Where an enricher cannot go on, no more is asked for, but what is being answered
// is waited for: it has been paid for.
func (b *builder) enriched(ctx context.Context, units []unit, f func(chunked, []addition) error) error {
	if len(b.enrichers) == 0 {
		return b.documents(ctx, units, func(d chunked) error { return f(d, nil) })
	}
	most, groups := sizes(b.enrichers)
	producing, stop := context.WithCancel(ctx)
	defer stop()
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	room, queue := make(chan struct{}, groups), make(chan *group, groups)
	var failed, produced error
	go func() {
		defer close(queue)
		produced = b.grouped(producing, units, most, func(g *group) error {
			if err := send(producing, room, struct{}{}); err != nil {
				return err
			}
			g.start(working, b.enrichers)
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
				stop()
				if ended := new(endedError); !errors.As(failed, &ended) {
					cancel()
				}
			}
		}
		<-room
	}
	if failed != nil {
		return failed
	}
	return produced
}

// grouped calls f with the documents of units, in groups of at most so many
// passages and about batchBytes bytes.
func (b *builder) grouped(ctx context.Context, units []unit, most int, f func(*group) error) error {
	pending, size := &group{}, 0
	flush := func() error {
		full := pending
		pending, size = &group{}, 0
		if len(full.documents) == 0 {
			return nil
		}
		return f(full)
	}
	err := b.documents(ctx, units, func(d chunked) error {
		if pending.passages+len(d.chunks) > most || size+len(d.Text) > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		pending.documents = append(pending.documents, d)
		pending.passages, size = pending.passages+len(d.chunks), size+len(d.Text)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// each calls f with the documents of a group.
func (g *group) each(f func(chunked, []addition) error) error {
	for i, d := range g.documents {
		added := make([]addition, len(g.made))
		for n := range g.made {
			added[n] = g.made[n][i]
		}
		if err := f(d, added); err != nil {
			return err
		}
	}
	return nil
}
