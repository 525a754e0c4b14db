package live

import (
	"context"
	"sync"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// queue holds requests until a batch takes them.
type queue struct {
	pipeline *Pipeline
	limit    int

	mu      sync.Mutex
	waiting []*request
	batches int // under way
	working int // requests in them
	closed  bool
}

// request is one item that somebody waits for.
type request struct {
	ctx    context.Context
	row    source.Row
	kind   kind
	follow func(stage.Step) // of kind follows

	result outcome.Result
	found  []sdk.Candidate
	err    error
	done   chan struct{} // closed when these are set

	batch *batch // nil: it waits
}

// kind is what is wanted of an item. Those of one kind travel together.
type kind int

const (
	answers kind = iota
	finds
	follows // travel alone, so that the times that they see are their own
)

// batch is requests that travel together.
type batch struct {
	requests []*request
	waited   int // requests that somebody still waits for
	end      context.CancelFunc
}

// do puts a request into the queue and waits until it is done, or its context has ended.
func (q *queue) do(r *request) error {
	r.done = make(chan struct{})
	if r.row.Trace == (sdk.Trace{}) {
		r.row.Trace = sdk.TraceOf(r.ctx)
	}
	if err := q.add(r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-r.ctx.Done():
		q.forget(r)
		return r.ctx.Err()
	}
}

func (q *queue) add(r *request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errClosed
	case len(q.waiting) >= q.limit:
		return ErrBusy
	}
	q.waiting = append(q.waiting, r)
	q.queued(1)
	q.begin()
	return nil
}

// forget drops a request that nobody waits for any more. A batch whose requests all are such ends.
func (q *queue) forget(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := r.batch; b != nil {
		if b.waited--; b.waited == 0 {
			b.end()
		}
		return
	}
	for i, w := range q.waiting {
		if w == r {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			q.queued(-1)
			return
		}
	}
}

// begin sends batches on their way. With nothing under way, what waits goes at once; else once
// it is as much as those under way have on average, and never more than half of all there is. A large
// batch costs the stages less for each of its requests, so a small one beside it would take
// their time from the others. The caller holds mu.
func (q *queue) begin() {
	for len(q.waiting) > 0 && !q.closed {
		v, err := q.pipeline.serving()
		if err != nil {
			for _, r := range q.waiting {
				r.err = err
				close(r.done)
			}
			q.queued(-len(q.waiting))
			q.waiting = nil
			return
		}
		size, batches := v.room()
		if q.batches >= batches || len(q.waiting)*q.batches < q.working {
			v.done()
			return
		}
		half := (len(q.waiting) + q.working + 1) / 2
		q.send(v, q.next(min(half, size)))
	}
}

// next takes the requests of a batch: those that have waited longest and are of one kind. The
// caller holds mu.
func (q *queue) next(size int) []*request {
	n := 1
	for n < min(len(q.waiting), size) && q.waiting[n].kind == q.waiting[0].kind && q.waiting[0].kind != follows {
		n++
	}
	q.queued(-n)
	taken := append([]*request(nil), q.waiting[:n]...)
	clear(q.waiting[:n]) // the array is kept for those that come
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return taken
}

// send begins a batch. The caller holds mu.
func (q *queue) send(v *version, requests []*request) {
	ctx, end := context.WithCancel(context.WithoutCancel(requests[0].ctx)) // with its values
	b := &batch{requests: requests, waited: len(requests), end: end}
	for _, r := range requests {
		r.batch = b
	}
	q.batches++
	q.working += len(requests)
	stop := context.AfterFunc(q.pipeline.set.ctx, end)
	go func() {
		if v.work(ctx, b); b.failed() {
			q.pipeline.examine(v)
		}
		stop()
		end()
		q.mu.Lock()
		q.batches--
		q.working -= len(requests)
		for _, r := range requests {
			close(r.done)
		}
		q.begin()
		q.mu.Unlock()
		v.done()
	}()
}

func (q *queue) counts() (waiting, working int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.working
}

// close refuses what waits and what will come. Batches under way end with the set.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, r := range q.waiting {
		r.err = errClosed
		close(r.done)
	}
	q.queued(-len(q.waiting))
	q.waiting = nil
}

// queued reports to the observer how the number of waiting requests changes.
func (q *queue) queued(change int) {
	outcome.ObserverOr(q.pipeline.options.Observe).Queued(q.pipeline.name, change)
}

// request is one for an item, which gets the next number.
func (p *Pipeline) request(ctx context.Context, item engine.Item, k kind) *request {
	return &request{ctx: ctx, kind: k, row: item.Row(int(p.line.Add(1)))}
}

// Answer takes an item through the pipeline. One that fails has its Result's Error set, and the
// error is nil: that says why the item was not worked on (ErrBusy, ErrStarting), that ctx has
// ended, or why the pipeline cannot serve. An item without an ID gets its number.
func (p *Pipeline) Answer(ctx context.Context, item engine.Item) (engine.Result, error) {
	r := p.request(ctx, item, answers)
	if err := p.queue.do(r); err != nil {
		return engine.Result{}, err
	}
	return p.resultOf(r.result), nil
}

// Retrieve returns what the last retrieve or rerank stage leaves for an item, best first. No voter
// is asked.
func (p *Pipeline) Retrieve(ctx context.Context, item engine.Item) ([]engine.Candidate, error) {
	r := p.request(ctx, item, finds)
	if err := p.queue.do(r); err != nil {
		return nil, err
	}
	return result.Candidates(r.found), nil
}

// Event is what one stage made of an item.
type Event struct {
	Stage      string             // as "sample.knn"
	Took       time.Duration      // of the stage
	Candidates []engine.Candidate // of a retrieve or rerank stage, best first
	Votes      []result.Vote      // of a voter
	Skipped    string             // why the stage made nothing of the item; empty: it did
}

// Follow does what Answer does. Before it returns, it calls each with what the stages made of the item,
// in the order of time and from one goroutine.
func (p *Pipeline) Follow(ctx context.Context, item engine.Item, each func(Event)) (engine.Result, error) {
	steps := newStream[stage.Step]()
	r := p.request(ctx, item, follows)
	r.follow = steps.add
	ended := make(chan error, 1)
	go func() { ended <- p.queue.do(r) }()
	report := func() {
		for _, s := range steps.take() {
			each(Event{s.Stage, s.Took, result.Candidates(s.Candidates), result.Votes(s.Votes), s.Skipped})
		}
	}
	for {
		select {
		case <-steps.there:
			report()
		case err := <-ended:
			if err != nil {
				return engine.Result{}, err
			}
			report()
			return p.resultOf(r.result), nil
		}
	}
}

// resultOf is a result as programs get it.
func (p *Pipeline) resultOf(r outcome.Result) engine.Result {
	return result.Of(r, p.Definition().Cost)
}
