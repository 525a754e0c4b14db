package enrich

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/knowledge/units"
)

// group is what one call of an enricher is about.
type group struct {
	documents []units.Document
	passages  int
	bytes     int           // of their texts
	room      int64         // that it takes
	made      [][]Additions // by enricher, then by document
	err       error
	done      chan struct{}
}

// start lets all enrichers work on a group at the same time, each once it has begun
// with the group before. It replaces begun, which has a channel for each enricher
// that is closed then. An enricher that cannot continue calls end.
func (g *group) start(ctx, ended context.Context, enrichers Enrichers, begun []chan struct{}, end context.CancelCauseFunc) {
	g.made, g.done = make([][]Additions, len(enrichers)), make(chan struct{})
	var all errgroup.Group
	for i, e := range enrichers {
		now := make(chan struct{})
		t := turn{before: begun[i], taken: sync.OnceFunc(func() { close(now) }), ended: ended, end: end}
		begun[i] = now
		all.Go(func() (err error) {
			g.made[i], err = e.enrich(ctx, t, g.documents)
			return err
		})
	}
	go func() {
		defer close(g.done)
		g.err = all.Wait()
	}()
}

// turn is when an enricher begins with a group: in the order of documents, and not
// once the build has ended.
type turn struct {
	before <-chan struct{} // closed once it has begun with the group before; nil: there is none
	taken  func()          // it has begun; may be called again
	ended  context.Context // its cause says why nothing is begun any more
	end    context.CancelCauseFunc
}

// take waits for the turn and for one of the slots, which the caller then has.
func (t turn) take(ctx context.Context, slots chan struct{}) error {
	if t.before != nil {
		<-t.before // it is soon over, whatever ends
	}
	select {
	case slots <- struct{}{}:
	case <-t.ended.Done():
		return context.Cause(t.ended)
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.ended.Err() != nil {
		<-slots
		return context.Cause(t.ended)
	}
	t.taken()
	return nil
}

// each calls f with the documents of a group.
func (g *group) each(f func(units.Document, []Additions) error) error {
	for i, d := range g.documents {
		added := make([]Additions, len(g.made))
		for n := range g.made {
			added[n] = g.made[n][i]
		}
		if err := f(d, added); err != nil {
			return err
		}
	}
	return nil
}
