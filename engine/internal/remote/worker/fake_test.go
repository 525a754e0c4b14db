package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// The encoder of packets is made once and kept: not in the bubble of the test that happens to be the first.
var _, _ = packet.EncodeOrder(run.Order{})

// place has runs, as the servers have them.
type place struct {
	t     *testing.T
	ids   chan string
	rooms map[string]*fakeRoom

	mu     sync.Mutex
	events []string // in their order
}

func newPlace(t *testing.T) *place {
	return &place{t: t, ids: make(chan string, 100), rooms: map[string]*fakeRoom{}}
}

// alone tests a worker at one run, in a time of their own.
func alone(t *testing.T, test func(t *testing.T, p *place, r *fakeRoom)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		test(t, p, p.add("a"))
	})
}

func (p *place) Watch(context.Context) <-chan string { return p.ids }

func (p *place) Room(_ context.Context, id string) (room, error) {
	r := p.rooms[id]
	select {
	case <-r.over:
		return nil, nil
	default:
	}
	if r.away > 0 {
		r.away--
		return nil, errors.New("the servers are away")
	}
	return r, nil
}

func (p *place) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fmt.Sprintf(format, args...))
}

// noted are the events that begin with one of some words.
func (p *place) noted(words ...string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var some []string
	for _, e := range p.events {
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(e, w) }) {
			some = append(some, e)
		}
	}
	return strings.Join(some, ", ")
}

// fakeRoom is a run with a queue.
type fakeRoom struct {
	*place
	id         string
	definition []byte
	queue      chan batch
	over       chan struct{}
	away       int                      // attempts to open it that fail
	work       func(*fake, batch) error // of its stages; nil: they answer at once
	lacks      []error                  // of attempts to open its pipeline, one after the other
	trouble    func(run.Answers) error  // nil: none
	size       int                      // batches at a time
	strange    bool                     // stages answer what cannot travel
	mu         sync.Mutex
	results    map[bus.Position]run.Answers
	told       []caller.WorkerState
}

func (p *place) add(id string) *fakeRoom {
	d := caller.Definition{Format: caller.DefinitionFormat, Run: id, Caller: "caller-1", Version: "1"}
	text := must.Get(d.Encode())(p.t)
	r := &fakeRoom{place: p, id: id, definition: text, queue: make(chan batch, 1000), over: make(chan struct{}), size: 2, results: map[bus.Position]run.Answers{}}
	p.rooms[id] = r
	p.ids <- id
	return r
}

// publish puts a batch of some items into the queue, with the deliveries that it has had before.
func (r *fakeRoom) publish(seq, items, before int) {
	var o run.Order
	for i := range items {
		o.Rows = append(o.Rows, source.Row{Line: seq*100 + i, Text: "t"})
	}
	data := must.Get(packet.EncodeOrder(o))(r.t)
	r.deliver(batch{Position: bus.Position{Part: 1, Seq: seq}, Data: data, Deliveries: before + 1})
}

func (r *fakeRoom) deliver(b batch) {
	b.Done = func(context.Context) error {
		r.note("done %s/%d", r.id, b.Seq)
		return nil
	}
	b.Return = func() error {
		r.note("return %s/%d", r.id, b.Seq)
		b.Deliveries++
		r.deliver(b)
		return nil
	}
	r.queue <- b
}

func (r *fakeRoom) Definition() []byte { return r.definition }

func (r *fakeRoom) Over(ctx context.Context) error {
	select {
	case <-r.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *fakeRoom) Take(ctx context.Context) (batch, error) {
	if ctx.Err() != nil {
		return batch{}, ctx.Err()
	}
	select {
	case b := <-r.queue:
		return b, nil
	case <-ctx.Done():
		return batch{}, ctx.Err()
	}
}

func (r *fakeRoom) Answer(ctx context.Context, at bus.Position, data []byte) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	_, answers, err := packet.DecodeAnswers(data)
	if err != nil {
		r.note("unread %s/%d: %v", r.id, at.Seq, err)
		return true, nil
	}
	r.note("answer %s/%d", r.id, at.Seq)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, there := r.results[at]
	if !there {
		r.results[at] = answers
	}
	return !there, nil
}

func (r *fakeRoom) Tell(_ context.Context, w caller.WorkerState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told = append(r.told, w); w.State == caller.Left {
		r.note("left %s", r.id)
	}
	return nil
}

// last is what was told last.
func (r *fakeRoom) last() caller.WorkerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) == 0 {
		return caller.WorkerState{}
	}
	return r.told[len(r.told)-1]
}

// fake is an opened pipeline.
type fake struct{ *fakeRoom }

func (f *fake) Size() int { return f.size }

func (f *fake) Calls() governor.Snapshot {
	return governor.Snapshot{Total: governor.Counts{Cost: .5, InputTokens: 2, OutputTokens: 1}}
}

func (f *fake) Close() { f.note("close %s", f.id) }

func (f *fake) Trouble(a run.Answers) error {
	if f.trouble == nil {
		return nil
	}
	return f.trouble(a)
}

func (f *fake) Take(ctx context.Context, o run.Order) (run.Answers, error) {
	seq := o.Rows[0].Line / 100
	f.note("begin %s/%d", f.id, seq)
	if f.work != nil {
		if err := f.work(f, batch{Position: bus.Position{Part: 1, Seq: seq}}); err != nil {
			return run.Answers{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return run.Answers{}, err
	}
	var a run.Answers
	for _, row := range o.Rows {
		r := outcome.Result{Line: row.Line}
		if row.Err != nil {
			r.Failure = &outcome.Failure{Err: row.Err}
			f.note("fails %s/%d: %v", f.id, seq, row.Err)
		}
		a.Results = append(a.Results, r)
	}
	if f.strange && o.Rows[0].Err == nil {
		a.Results = append(a.Results, outcome.Result{})
	}
	return a, nil
}

// start lets a worker take part in the runs of a place until the test ends. The function ends it earlier, and waits for that.
func (p *place) start(jobs int) (w *worker, end func()) {
	w = &worker{
		name: "here-1", version: "1", at: p, gone: func(string) error { return nil }, places: newLine(together), idle: idle, grace: time.Minute,
		say: func(format string, args ...any) { p.note("say "+format, args...) }, log: slog.New(slog.DiscardHandler),
		open: func(_ context.Context, r room, _ *caller.Definition) (joined, error) {
			f := r.(*fakeRoom)
			p.note("open %s", f.id)
			if len(f.lacks) > 0 {
				err := f.lacks[0]
				f.lacks = f.lacks[1:]
				return nil, err
			}
			return &fake{f}, nil
		},
	}
	if jobs > 0 {
		w.jobs = newLine(jobs)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(end)
	return w, end
}
