package live

import (
	"errors"
	"time"

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/sdk/support"
)

// mends are the delays between attempts to replace a version that cannot answer any more.
var mends = support.Backoff{First: time.Second, Max: time.Minute}

// steady is how long a version has to serve well for the next one that is sick to be replaced at once.
const steady = 5 * time.Minute

// keep holds the knowledge that is searched, and replaces a version that cannot answer any more.
func (p *Pipeline) keep() {
	p.set.work.Go(p.hold)
	for failures := 0; ; {
		select {
		case <-p.sick:
		case <-p.set.ctx.Done():
			return
		}
		now := p.current()
		if now == nil || !now.sick.Load() {
			continue // it was replaced meanwhile
		}
		if time.Since(now.since) > steady {
			failures = 0
		}
		if failures > 0 && support.SleepFor(p.set.ctx, mends.Delay(failures)) != nil {
			return
		}
		failures++
		if err := p.Rebuild(p.set.ctx); err != nil && p.set.ctx.Err() == nil {
			p.set.log.Error("a version of the pipeline that cannot answer could not be replaced", "pipeline", p.name, "error", err)
			p.ail(now)
		}
	}
}

// hold keeps the knowledge that is searched from being removed.
func (p *Pipeline) hold() {
	tick := time.NewTicker(generation.HoldEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.holdOnce()
		case <-p.set.ctx.Done():
			return
		}
	}
}

func (p *Pipeline) holdOnce() {
	v, err := p.serving()
	if err != nil {
		return
	}
	defer v.done()
	switch err := v.run.Hold(p.set.ctx, v.holder); {
	case errors.Is(err, generation.ErrRemoved):
		p.set.log.Warn("the knowledge that is searched was removed, and is built again", "pipeline", p.name, "error", err)
		p.ail(v)
	case err != nil && p.set.ctx.Err() == nil:
		p.set.log.Warn("the knowledge that is searched could not be held", "pipeline", p.name, "error", err)
	}
}

func (p *Pipeline) current() *version {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// ail notes that a version cannot answer any more, so that it is replaced.
func (p *Pipeline) ail(v *version) {
	v.sick.Store(true)
	select {
	case p.sick <- struct{}{}:
	default:
	}
}

// examine looks whether a version can still answer, after it has failed on an item.
func (p *Pipeline) examine(v *version) {
	if v.sick.Load() {
		return
	}
	// A stage that had to stop since its budget is spent stays stopped.
	if v.Workspace().Failed() != nil || len(v.run.Graph().Halted()) > 0 && v.Workspace().Again() {
		p.ail(v)
	}
}
