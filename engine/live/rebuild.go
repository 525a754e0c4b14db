package live

import (
	"context"

	"github.com/racflow/racflow/engine/observe"
)

// Rebuild opens the file anew and brings its knowledge up to date now; what served before serves
// meanwhile. nil: another version has taken over, or nothing has changed. Where the file or a
// source is wrong, what serves stays, and Status has the error, too.
func (p *Pipeline) Rebuild(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.set.ctx, cancel)()
	select {
	case p.rebuilding <- struct{}{}:
		defer func() { <-p.rebuilding }()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case p.set.building <- struct{}{}:
		defer func() { <-p.set.building }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.note(func() { p.busy = true })
	err := p.rebuild(ctx)
	p.note(func() { p.busy, p.failure = false, err })
	return err
}

func (p *Pipeline) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *Pipeline) rebuild(ctx context.Context) (err error) {
	var next, now *version
	p.note(func() { next, now, p.opened = p.opened, p.now, nil })
	if next == nil {
		var of depends
		p.note(func() { of = p.depends })
		stamp := of.stamp(ctx)
		p.note(func() { p.built = stamp }) // also where it cannot be opened
		if next, err = p.open(); err != nil {
			return err
		}
	}
	if err := next.start(ctx); err != nil {
		next.done()
		return err
	}
	if now != nil && !now.sick.Load() && now.same(next) {
		next.done()
		return nil
	}
	p.swap(next)
	return nil
}

// swap has a version take over.
func (p *Pipeline) swap(next *version) {
	p.mu.Lock()
	before := p.now
	p.now, p.definition = next, next.Definition()
	p.mu.Unlock()
	if before != nil {
		observe.Or(p.options.Observe).Swapped(p.name)
		before.done()
		p.set.log.Info("another version of the pipeline serves", "pipeline", p.name)
	}
}
