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

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// Errors of requests that the pipeline has not started.
var (
	ErrBusy     = errors.New("too many requests are waiting: try again later")
	ErrStarting = errors.New("the pipeline is being started: try again later")
	errClosed   = errors.New("the pipeline has been closed")
)

// Pipeline is a pipeline that is kept open. Its methods are safe for concurrent use.
type Pipeline struct {
	set        *Set
	file, name string
	options    workspace.Options
	queue      queue
	line       atomic.Int64 // line number of the newest item

	embeds     chan struct{} // holds the calls of Embed under way
	rebuilding chan struct{} // holds the running rebuild
	sick       chan struct{} // has a value when the serving version can no longer answer

	mu         sync.Mutex
	opened     *version           // checked by Open, not started yet; nil: started
	now        *version           // the version that serves; nil: none yet
	versions   map[*version]bool  // all versions that have not ended
	definition *pipeline.Pipeline // of now, or of its future first version
	depends    depends
	built      string // stamp of the files before the newest version was opened
	busy       bool   // a rebuild is running
	failure    error  // of the last rebuild; nil: it succeeded
	theirs     bool   // failure concerns attached collections, which their owners may repair
	closed     bool
}

func newPipeline(s *Set, file, name string, o workspace.Options) *Pipeline {
	p := &Pipeline{set: s, file: file, name: name, options: o, embeds: make(chan struct{}, embedding), rebuilding: make(chan struct{}, 1), sick: make(chan struct{}, 1), versions: map[*version]bool{}}
	p.queue.pipeline = p
	if p.queue.limit = s.options.Queue; p.queue.limit == 0 {
		p.queue.limit = defaultQueue
	}
	return p
}

// Status is the state of a pipeline.
type Status struct {
	Ready      bool
	Since      time.Time // when the present version took over
	Rebuilding bool
	Error      string // why the last rebuild failed; empty: it succeeded
	Waiting    int    // requests that are not in a batch yet
	Working    int    // requests under way
	Knowledge  []run.Generation
	Labels     []string
	Form       sdk.LabelForm            // how labels are written
	Described  map[string]sdk.Described // descriptions of labels from a table
	Answers    journal.AnswerKind       // empty: unknown until it is ready
}

// Name returns the name of the pipeline block.
func (p *Pipeline) Name() string { return p.name }

// Definition returns the pipeline block of the present version.
func (p *Pipeline) Definition() *pipeline.Pipeline {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.definition
}

// Status returns the state of the pipeline.
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
		s.Form, s.Described = v.Definition().LabelForm(), v.run.Graph().Described()
	}
	return s
}

// serving returns the version that serves. It stays open until the caller calls its done.
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
	p.now.use() // safe: a version ends only after another has replaced it
	return p.now, nil
}

// closing removes a version whose processes have ended.
func (p *Pipeline) closing(v *version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.versions, v)
}

func (p *Pipeline) close() {
	p.rebuilding <- struct{}{} // a rebuild ends with the set; do not close its version meanwhile
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

// Rebuild opens the file again and updates its knowledge now; the present version serves meanwhile.
// It returns nil if a new version has taken over, or if nothing has changed. If the file or a
// source is invalid, the present version stays, and Status reports the error, too.
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
		p.note(func() { p.built = stamp }) // even if the version cannot be opened
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

// starts limits the attempts to open and start a version until it holds its knowledge.
const starts = 3

// start starts a version. If another version with the same knowledge ends and removes the knowledge
// before this version can hold it, start opens a new version, which builds the knowledge again.
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

// swap makes a version take over.
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
