package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Errors of requests that the pipeline has not begun.
var (
	ErrBusy     = errors.New("too many requests are waiting: try again later")
	ErrStarting = errors.New("the pipeline is being started: try again later")
	errClosed   = errors.New("the pipeline has been closed")
)

// Pipeline is a pipeline that is kept open. Its methods may be called by several goroutines at
// once.
type Pipeline struct {
	set        *Set
	file, name string
	options    engine.Options
	queue      queue
	line       atomic.Int64 // of the item that came last

	rebuilding chan struct{} // holds the rebuild under way
	sick       chan struct{} // has a value when what serves cannot answer any more

	mu         sync.Mutex
	opened     *version           // checked by Open, and not started yet; nil: it has been
	now        *version           // what serves; nil: nothing yet
	versions   map[*version]bool  // all that have not ended
	definition *pipeline.Pipeline // of now, or of what is to be it
	depends    depends
	built      string // stamp of these before the version was opened that was opened last
	busy       bool   // a rebuild is under way
	failure    error  // of the last rebuild; nil: it was none
	theirs     bool   // it failed where collections are attached, which their owners may mend
	closed     bool
}

func newPipeline(s *Set, file, name string, o engine.Options) *Pipeline {
	p := &Pipeline{set: s, file: file, name: name, options: o, rebuilding: make(chan struct{}, 1), sick: make(chan struct{}, 1), versions: map[*version]bool{}}
	p.queue.pipeline = p
	if p.queue.limit = s.options.Queue; p.queue.limit == 0 {
		p.queue.limit = defaultQueue
	}
	return p
}

// Status is how a pipeline fares.
type Status struct {
	Ready      bool
	Since      time.Time // when what serves took over
	Rebuilding bool
	Error      string // why the last rebuild failed; empty: it did not
	Waiting    int    // requests that no batch has yet
	Working    int    // those under way
	Knowledge  []run.Generation
	Labels     []string
	Answers    journal.AnswerKind // empty: not known before it is ready
}

// Name is that of the pipeline block.
func (p *Pipeline) Name() string { return p.name }

// Definition is the pipeline block as it is served.
func (p *Pipeline) Definition() *pipeline.Pipeline {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.definition
}

// Status says how the pipeline fares.
func (p *Pipeline) Status() Status {
	waiting, working := p.queue.counts()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Ready: p.now != nil && !p.closed, Rebuilding: p.busy, Waiting: waiting, Working: working}
	if p.failure != nil {
		s.Error = p.failure.Error()
	}
	if v := p.now; v != nil {
		s.Since, s.Knowledge, s.Labels, s.Answers = v.since, v.run.Generations(), v.run.Labels(), v.Answers(v.run.Labels())
	}
	return s
}

// serving is the version that serves, kept open until its done is called.
func (p *Pipeline) serving() (*version, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, errClosed
	case p.now == nil && p.failure != nil && !p.busy:
		return nil, fmt.Errorf("the pipeline cannot serve: %w", p.failure)
	case p.now == nil:
		return nil, ErrStarting
	}
	p.now.use() // it is not retired before another one has taken its place
	return p.now, nil
}

// closing forgets a version whose processes have ended.
func (p *Pipeline) closing(v *version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.versions, v)
}

func (p *Pipeline) close() {
	p.rebuilding <- struct{}{} // a rebuild ends with the set, and its version is not closed under it
	defer func() { <-p.rebuilding }()
	p.mu.Lock()
	p.closed = true
	all := slices.Collect(maps.Keys(p.versions))
	p.mu.Unlock()
	p.queue.close()
	for _, v := range all {
		v.close(false)
	}
}

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
		outcome.ObserverOr(p.options.Observe).Swapped(p.name)
		before.done()
		p.set.log.Info("another version of the pipeline serves", "pipeline", p.name)
	}
}
