package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Answer implements engine.Remote: it publishes the order at the next position, and waits for the
// result.
func (c *Caller) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	if c.run == nil {
		return run.Answers{}, errNotBegun
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return run.Answers{}, err
	}
	defer leave()
	data, err := packet.EncodeOrder(o)
	if err != nil {
		return run.Answers{}, err
	}
	at, result := c.next()
	defer c.forget(at)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.work, cancel)()
	if err := c.run.Publish(ctx, at, data); err != nil {
		return run.Answers{}, c.because(err)
	}
	select {
	case r := <-result:
		return c.open(o, r)
	case <-ctx.Done():
		return run.Answers{}, c.because(ctx.Err())
	}
}

// because returns why an order has no answer: the end of the work if that is the reason, else err.
func (c *Caller) because(err error) error {
	if ended := c.ended(); ended != nil {
		return ended
	}
	return err
}

// next reserves the next position.
func (c *Caller) next() (bus.Position, chan bus.Result) {
	result := make(chan bus.Result, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Published++
	at := bus.Position{Part: c.state.Part, Seq: int(c.state.Published)}
	c.waiting[at] = result
	return at, result
}

// forget records that no call waits for a position any more.
func (c *Caller) forget(at bus.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, at)
}

// open decodes the result of an order.
func (c *Caller) open(o run.Order, r bus.Result) (run.Answers, error) {
	rows, answers, err := packet.DecodeAnswers(r.Data)
	if err == nil && len(rows) != len(o.Rows) {
		err = fmt.Errorf("it is about %d rows, and %d were sent", len(rows), len(o.Rows))
	}
	for i := 0; err == nil && i < len(rows); i++ {
		if rows[i].Line != o.Rows[i].Line {
			err = fmt.Errorf("it is about line %d of the input, where line %d was sent", rows[i].Line, o.Rows[i].Line)
		}
	}
	if err != nil {
		return run.Answers{}, fmt.Errorf("run %s: the result of batch %d.%d, by %s: %w", c.Run(), r.Part, r.Seq, r.Worker, err)
	}
	return answers, nil
}

// receive delivers results to the calls that wait for them, starting after a sequence number, until
// the work ends.
func (c *Caller) receive(after uint64) {
	for r, err := range c.run.Results(c.work, after) {
		if err != nil {
			c.stop(fmt.Errorf("results of run %s: %w", c.Run(), err))
			return
		}
		c.mu.Lock()
		to := c.waiting[r.Position]
		delete(c.waiting, r.Position)
		if to != nil {
			c.state.Done++
		}
		c.mu.Unlock()
		if to != nil {
			to <- r
		}
	}
}

// Begin implements engine.Remote. It creates the run at the servers, or starts another part of it.
func (c *Caller) Begin(ctx context.Context, b engine.Beginning) error {
	c.kept, c.watched = b.Manifest.ID != "", b.Pipeline.Workspace().Options().Observe
	id := c.o.Run
	if b.Resumed && b.Manifest.Cluster != nil {
		id = b.Manifest.Cluster.Run
	}
	c.sending.SetLimit(sendAtOnce)
	c.work, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := c.define(ctx, id, b); err != nil {
		return err
	}
	var earlier *bus.Run
	var err error
	if b.Resumed {
		if earlier, err = c.conn.Open(ctx, id); err != nil && !errors.Is(err, bus.ErrNoRun) {
			return err
		}
	}
	if earlier != nil {
		err = c.resume(ctx, earlier, b)
	} else {
		if b.Resumed && b.Manifest.Cluster != nil {
			c.o.Say("run %s is not at %s any more: what the journal lacks is asked again", id, c.o.Servers)
			err = c.move(b)
		}
		if err == nil {
			err = c.create(ctx, b.Pipeline)
		}
	}
	if err != nil {
		return err
	}
	return c.serve(ctx)
}

// define creates the definition, and uploads the files that it names.
func (c *Caller) define(ctx context.Context, id string, b engine.Beginning) error {
	packed, err := shipment.NewBundle(b.Pipeline)
	if err != nil {
		return err
	}
	m := b.Manifest
	m.Command, m.Output = nil, "" // they matter on this machine only
	m.Cluster = &journal.ManifestCluster{Run: id, Servers: c.o.Servers}
	o := b.Pipeline.Workspace().Options()
	d := &Definition{
		Format: DefinitionFormat, Run: id, Caller: c.conn.Name(), Version: engine.Version(), Started: m.Started,
		Manifest: m, Labels: b.Labels, Bundle: packed, Limits: lease.LimitsOf(b.Pipeline.Definition(), o.Services.Budget),
		Keep: cmp.Or(o.Keep, journal.Keep(b.Pipeline.Definition().Journal.Keep)), Lists: o.Lists, Spend: o.Spend, Mode: o.Services.Mode,
	}
	if !d.Spend.IsSet() {
		d.Spend = m.Spend // of a resumed run without a new limit
	}
	if d.Started.IsZero() {
		d.Started = time.Now().UTC().Truncate(time.Millisecond)
	}
	if spent, any := b.Pipeline.Workspace().Spent(); any {
		d.Limits.Spent = lease.Amount{Cost: spent.Total.Cost, Tokens: int64(spent.Total.InputTokens + spent.Total.OutputTokens)} //nolint:gosec // tokens never reach the limit of int64
	}
	c.defined = d
	return c.upload(ctx, b.Pipeline)
}

// upload uploads files that the servers lack.
func (c *Caller) upload(ctx context.Context, p *engine.Pipeline) error {
	files, err := p.Shipment()
	if err != nil {
		return err
	}
	if c.defined.Files, err = shipment.PutShipped(ctx, c.conn, files); err != nil {
		return fmt.Errorf("bring the knowledge of the run to %s: %w", c.o.Servers, err)
	}
	if err := c.defined.Bundle.Put(ctx, c.conn); err != nil {
		return fmt.Errorf("bring the files of the run to %s: %w", c.o.Servers, err)
	}
	return nil
}

// create creates the run at the servers. Then it uploads missing files again, because another
// caller may have swept them before the run existed.
func (c *Caller) create(ctx context.Context, p *engine.Pipeline) error {
	text, err := c.defined.Encode()
	if err != nil {
		return err
	}
	if c.run, err = c.conn.Create(ctx, bus.Config{ID: c.defined.Run, Definition: text, Replicas: c.o.Replicas, Claim: c.o.Claim}); err != nil {
		return err
	}
	if err := c.upload(ctx, p); err != nil {
		return err
	}
	return c.claim(ctx, SeenCaller{Part: 1})
}

// keep hands out the limits of the run. After a crash of the caller, a worker may do that: then
// keep waits until the worker gives it back.
func (c *Caller) keep(ctx context.Context) error {
	within, cancel := context.WithCancel(c.work)
	stop := context.AfterFunc(ctx, cancel)
	limits := c.defined.Limits
	c.mu.Lock()
	limits.Part = c.state.Part // each part has its own budget, like a run that is resumed on one machine
	c.mu.Unlock()
	keeper, err := lease.Keep(within, c.run, limits, lease.Options{Name: c.conn.Name(), Log: c.o.Log})
	if !stop() || err != nil {
		cancel()
		return cmp.Or(err, ctx.Err())
	}
	c.leave = append(c.leave, func() {
		keeper.Close()
		cancel()
	})
	return nil
}

// serve starts the services that run beside the batches.
func (c *Caller) serve(ctx context.Context) error {
	c.crew = newCrew(c.Run(), c.o)
	if err := c.keep(ctx); err != nil {
		return err
	}
	var err error
	if c.answers, err = c.serveAnswers(ctx, c.run); err != nil {
		return err
	}
	if err := c.crew.synchronise(ctx, c.run, CallerKey); err != nil {
		return err
	}
	changes := c.run.Follow(c.work, WorkerPrefix)
	after := c.after
	c.start(func() { c.receive(after) })
	c.start(func() { c.crew.watch(c.work, changes, c.widen) })
	c.start(c.report)
	return nil
}

// Options configure a caller beyond its connection.
type Options struct {
	// Run is the ID of a new run; empty: New creates one. A resumed run uses the ID in its manifest.
	Run     string
	Servers string // as the user wrote them, for messages
	State   string // state folder with answers of services for the workers; empty: none

	Replicas int           // bus.Config.Replicas
	Claim    time.Duration // bus.Config.Claim

	Say  func(format string, args ...any) // prints messages for people; nil: no messages
	Log  *slog.Logger                     // nil: no log
	Idle time.Duration                    // how long to wait before reporting that no worker takes part; 0: 5 s

	// Spent is called at the end with the totals of the workers' calls of services; may be nil.
	Spent func(governor.Snapshot)
}

// Caller runs a pipeline on many machines. It implements engine.Leaver. Its methods are safe for
// concurrent use.
type Caller struct {
	conn *bus.Conn
	o    Options
	host string

	run     *bus.Run
	crew    *crew
	defined *Definition
	after   uint64 // sequence number before the first result of this part
	kept    bool   // the caller has a journal, so the run can be resumed
	work    context.Context
	stop    context.CancelCauseFunc // ends work
	parts   sync.WaitGroup          // goroutines of work
	sending errgroup.Group          // batches of a detached run that are being published
	answers *answering
	leave   []func() // functions that stop the services for workers

	room *semaphore.Weighted // batches that may be under way: Window less what is held back
	held int64               // part of Window held back until there are more workers
	wide int64               // the batches that Window allows

	watched   outcome.Observer // nil: there is none
	observing sync.Mutex       // orders the reports, so that the last one is the newest

	mu      sync.Mutex
	state   SeenCaller
	stated  uint64 // revision of state
	waiting map[bus.Position]chan bus.Result
	items   int   // items per batch
	bytes   int64 // of the batches of a detached run
}

var _ engine.Leaver = (*Caller)(nil)

// New returns a caller whose run has not begun.
func New(conn *bus.Conn, o Options) (*Caller, error) {
	if o.Run = cmp.Or(o.Run, NewRunID()); !IsRunID(o.Run) {
		return nil, fmt.Errorf("%q is not the ID of a run, such as %s", o.Run, NewRunID())
	}
	o.fill()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Caller{conn: conn, o: o, host: host, waiting: map[bus.Position]chan bus.Result{}}, nil
}

func (o *Options) fill() {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Idle = cmp.Or(o.Idle, 5*time.Second)
}

// Run returns the ID of the run; for a resumed run, only after Begin.
func (c *Caller) Run() string {
	if c.defined != nil {
		return c.defined.Run
	}
	return c.o.Run
}

var errNotBegun = errors.New("the run has not begun at the servers")

// start runs a goroutine of the caller's work.
func (c *Caller) start(do func()) {
	c.parts.Add(1)
	go func() {
		defer c.parts.Done()
		do()
	}()
}

// ended returns why the work ended; nil: it continues.
func (c *Caller) ended() error {
	if c.work.Err() == nil {
		return nil
	}
	return context.Cause(c.work)
}

const (
	// floorItems may be under way even with few workers: as many as in a run on one machine with a
	// service that accepts many calls.
	floorItems = 8192
	// maxItems is the maximum under way, since they are in memory.
	maxItems = 1 << 17
	// jobs is how many batches a worker counts for at least, even if it reports no number.
	jobs = 8
)

// Window implements engine.Remote. It returns the maximum number of batches; with few workers,
// fewer are under way.
func (c *Caller) Window(items int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if items = max(items, 1); c.items == items { // the same size: another pass
		return int(c.wide)
	}
	c.items = items
	c.wide = int64(max(maxItems/c.items, 2))
	c.room = semaphore.NewWeighted(c.wide)
	c.held = c.wide - min(c.wide, int64(max(floorItems/c.items, 1)))
	c.room.TryAcquire(c.held)
	return int(c.wide)
}

// enter waits until another batch may be under way; leave ends that batch.
func (c *Caller) enter(ctx context.Context) (leave func(), err error) {
	c.mu.Lock()
	room := c.room
	c.mu.Unlock()
	if room == nil {
		return func() {}, nil
	}
	return func() { room.Release(1) }, room.Acquire(ctx, 1)
}

// widen raises the number of batches under way to keep the workers busy. It never lowers it,
// because lost workers may return.
func (c *Caller) widen() {
	want := int64(c.crew.batches())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room == nil {
		return
	}
	if more := want - (c.wide - c.held); more > 0 {
		more = min(more, c.held)
		c.room.Release(more)
		c.held -= more
	}
}
