package live

import (
	"context"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/pipeline"
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
	p.note(func() { next, now, p.opened, p.theirs = p.opened, p.now, nil, false })
	if next == nil {
		var of depends
		p.note(func() { of = p.depends })
		stamp := of.stamp(ctx)
		p.note(func() { p.built = stamp }) // also where it cannot be opened
		if next, err = p.open(); err != nil {
			return err
		}
	}
	theirs := slices.ContainsFunc(next.Definition().Knowledge(), (*pipeline.Knowledge).Attached)
	if next, err = p.start(ctx, next); err != nil {
		p.note(func() { p.theirs = theirs })
		return err
	}
	if now != nil && !now.sick.Load() && now.same(next) {
		next.done()
		return nil
	}
	p.swap(next)
	return nil
}

// starts is how often a version is opened and started until it holds its knowledge.
const starts = 3

// start starts a version. Where another version, which had the same knowledge and left it, has removed it
// before this one could hold it, a new one is opened, which builds it again.
func (p *Pipeline) start(ctx context.Context, next *version) (*version, error) {
	for attempt := 1; ; attempt++ {
		err := next.start(ctx)
		if err == nil {
			return next, nil
		}
		next.done()
		if attempt == starts || !errors.Is(err, generation.ErrRemoved) {
			return nil, err
		}
		if next, err = p.open(); err != nil {
			return nil, err
		}
	}
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
