package live

import (
	"context"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// queue holds requests until a batch takes them.
type queue struct {
	pipeline *Pipeline
	limit    int

	mu      sync.Mutex
	waiting []*request
	batches int // under way
	working int // requests in these batches
	closed  bool
}

// request is a request for one item.
type request struct {
	ctx    context.Context
	row    source.Row
	kind   kind
	follow func(stage.Step) // for kind follows
	whole  bool             // with the probabilities of all labels

	result outcome.Result
	found  []sdk.Candidate
	err    error
	done   chan struct{} // closed after result, found and err are set

	batch *batch // nil: the request waits
}

// kind is the kind of a request. Only requests of one kind share a batch.
type kind int

const (
	answers kind = iota
	finds
	follows // never share a batch, so that reported times belong to one request
)

// batch is a group of requests under way.
type batch struct {
	requests []*request
	waited   int // number of requests with a waiting caller
	end      context.CancelFunc
}

// do queues a request and waits until it is done, or its context has ended.
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

// forget drops a request without a waiting caller. A batch of only such requests ends.
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

// begin starts batches. If none is under way, the waiting requests start at once. Otherwise they
// start when they are as many as the average batch under way. A batch never takes more than half of
// all requests. Stages need less time per request in a large batch, so a small batch at the same
// time would slow the others down. The caller holds mu.
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

// next removes the requests of a batch from the queue: the oldest ones, all of one kind. The caller
// holds mu.
func (q *queue) next(size int) []*request {
	n := 1
	for n < min(len(q.waiting), size) && q.waiting[n].kind == q.waiting[0].kind && q.waiting[0].kind != follows {
		n++
	}
	q.queued(-n)
	taken := append([]*request(nil), q.waiting[:n]...)
	clear(q.waiting[:n]) // clears the references, since the array stays in use
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return taken
}

// send starts a batch. The caller holds mu.
func (q *queue) send(v *version, requests []*request) {
	ctx, end := context.WithCancel(context.WithoutCancel(requests[0].ctx)) // keeps the context's values
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

// close rejects waiting and new requests. Batches under way end with the set.
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

// queued reports to the observer by how much the number of waiting requests changes.
func (q *queue) queued(change int) {
	outcome.ObserverOr(q.pipeline.options.Observe).Queued(q.pipeline.name, change)
}

// request creates a request for an item, with the next line number.
func (p *Pipeline) request(ctx context.Context, item workspace.Item, k kind) *request {
	return &request{ctx: ctx, kind: k, row: item.Row(int(p.line.Add(1)))}
}

// Answer sends an item through the pipeline. For an item that fails, Error in the Result is set and
// err is nil. A non-nil err means that the item was not started (ErrBusy, ErrStarting), that ctx
// has ended, or that the pipeline cannot serve. An item without an ID gets its number.
func (p *Pipeline) Answer(ctx context.Context, item workspace.Item) (workspace.Result, error) {
	r := p.request(ctx, item, answers)
	if err := p.queue.do(r); err != nil {
		return workspace.Result{}, err
	}
	return output.Of(r.result), nil
}

// Decide is like Answer, but the Result's Labels have all labels that the election estimates.
func (p *Pipeline) Decide(ctx context.Context, item workspace.Item) (workspace.Result, error) {
	r := p.request(ctx, item, answers)
	r.whole = true
	if err := p.queue.do(r); err != nil {
		return workspace.Result{}, err
	}
	out := output.Of(r.result)
	out.Verdict = r.result.Verdict // probabilities that are not rounded
	return out, nil
}

// embedding limits simultaneous calls of Embed, which do not go through the queue.
const embedding = 4

// Embed returns a vector of each text, embedded as a query; nil: the pipeline has no embedder.
func (p *Pipeline) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	select {
	case p.embeds <- struct{}{}:
		defer func() { <-p.embeds }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v, err := p.serving()
	if err != nil {
		return nil, err
	}
	defer v.done()
	return v.run.Graph().Embed(ctx, texts)
}

// Retrieve returns the candidates of the last retrieve or rerank stage for an item, best first. It
// asks no voter.
func (p *Pipeline) Retrieve(ctx context.Context, item workspace.Item) ([]workspace.Candidate, error) {
	r := p.request(ctx, item, finds)
	if err := p.queue.do(r); err != nil {
		return nil, err
	}
	return output.Candidates(r.found), nil
}

// Event is the result of one stage for an item.
type Event struct {
	Stage      string                // such as "sample.knn"
	Took       time.Duration         // time of the stage
	Candidates []workspace.Candidate // of a retrieve or rerank stage, best first
	Votes      []result.Vote         // of a voter
	Skipped    string                // why the stage skipped the item; empty: not skipped
}

// Follow is like Answer. Before it returns, it calls each with the results of the stages for the
// item, in chronological order and one at a time.
func (p *Pipeline) Follow(ctx context.Context, item workspace.Item, each func(Event)) (workspace.Result, error) {
	r := p.request(ctx, item, follows)
	var mu sync.Mutex
	over := false
	r.follow = func(s stage.Step) { // stages run concurrently, and may outlast a request whose caller gave up
		mu.Lock()
		defer mu.Unlock()
		if !over {
			each(Event{s.Stage, s.Took, output.Candidates(s.Candidates), output.Votes(s.Votes), s.Skipped})
		}
	}
	err := p.queue.do(r)
	mu.Lock()
	defer mu.Unlock()
	if over = true; err != nil {
		return workspace.Result{}, err
	}
	return output.Of(r.result), nil
}
