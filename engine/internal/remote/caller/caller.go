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

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
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
	at := c.position()
	c.waiting[at] = result
	return at, result
}

// position reserves the next position. The caller holds mu.
func (c *Caller) position() bus.Position {
	c.state.Published++
	return bus.Position{Part: part, Seq: int(c.state.Published)}
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

// receive delivers results to the calls that wait for them, until the work ends.
func (c *Caller) receive() {
	for r, err := range c.run.Results(c.work, 0) {
		if err != nil {
			c.lost(fmt.Errorf("results of run %s: %w", c.Run(), err))
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

// lost ends the work because of an error of the servers.
func (c *Caller) lost(err error) {
	if errors.Is(err, bus.ErrNoRun) {
		err = fmt.Errorf("run %s was removed from %s, or taken over by who resumed it: this caller has left it, and what it has is kept (%w)", c.Run(), c.o.Servers, err)
	}
	c.stop(err)
}

// Begin implements engine.Remote. It creates the run at the servers. A resumed run takes over what an
// earlier one has there.
func (c *Caller) Begin(ctx context.Context, b engine.Beginning) error {
	c.kept, c.watched = b.Manifest.ID != "", b.Pipeline.Workspace().Options().Observe
	c.sending.SetLimit(sendAtOnce)
	c.work, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := c.define(ctx, b); err != nil {
		return err
	}
	if b.Resumed && b.Manifest.Cluster != nil {
		if err := c.resume(ctx, b); err != nil {
			return err
		}
	}
	if err := c.create(ctx, b.Pipeline); err != nil {
		return err
	}
	return c.serve(ctx)
}

// define creates the definition, and uploads the files that it names.
func (c *Caller) define(ctx context.Context, b engine.Beginning) error {
	packed, err := shipment.NewBundle(b.Pipeline)
	if err != nil {
		return err
	}
	if err := c.share(ctx, b.Pipeline.File()); err != nil {
		return err
	}
	m := b.Manifest
	m.Command, m.Output = nil, "" // they matter on this machine only
	m.Cluster = &journal.ManifestCluster{Run: c.o.Run, Servers: c.o.Servers}
	o := b.Pipeline.Workspace().Options()
	d := &Definition{
		Format: DefinitionFormat, Run: c.o.Run, Caller: c.conn.Name(), Version: engine.Version(), Started: m.Started,
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

// share makes what workers need to share limits and answers with other runs: they may not do so.
func (c *Caller) share(ctx context.Context, f *pipeline.File) error {
	names := []string{f.Cache.Shared}
	for _, l := range f.Limits {
		names = append(names, l.Shared)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, err := c.conn.Share(ctx, name, bus.Caller); err != nil {
			return err
		}
	}
	return nil
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
	return c.put(ctx)
}

// serve starts the services that run beside the batches.
func (c *Caller) serve(ctx context.Context) (err error) {
	c.keeper = lease.Keep(c.work, c.run, lease.Options{Limits: c.defined.Limits, Share: c.o.Share, Name: c.conn.Name(), Log: c.o.Log})
	if c.answers, err = c.serveAnswers(ctx, c.run); err != nil {
		return err
	}
	c.parts.Go(c.receive)
	c.parts.Go(c.report)
	return nil
}

// Options configure a caller beyond its connection.
type Options struct {
	// Run is the ID of the new run; empty: New creates one.
	Run     string
	Servers string // as the user wrote them, for messages
	State   string // state folder with answers of services for the workers; empty: none

	Replicas int           // bus.Config.Replicas
	Claim    time.Duration // bus.Config.Claim

	Say  func(format string, args ...any) // prints messages for people; nil: no messages
	Log  *slog.Logger                     // nil: no log
	Idle time.Duration                    // how long to wait before reporting that no worker takes part; 0: 5 s

	// Share shares limits with other runs (governor.Options.Share); nil: they hold for this run.
	Share func(*pipeline.Limit) (governor.Admitter, error)

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
	defined *Definition
	kept    bool // the caller has a journal, so the run can be resumed
	work    context.Context
	stop    context.CancelCauseFunc // ends work
	parts   sync.WaitGroup          // goroutines of work
	sending errgroup.Group          // batches of a detached run that are being published
	answers *bus.AnswersServer      // of this machine's response cache; nil: there is none
	keeper  *lease.Keeper           // of the run's limits; nil: this process does not stand by for that

	watched outcome.Observer // nil: there is none
	looking chan struct{}    // one look at a time, so that the last one is the newest
	crew    crew

	mu      sync.Mutex
	state   SeenCaller
	waiting map[bus.Position]chan bus.Result
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
	return &Caller{conn: conn, o: o, host: host, looking: make(chan struct{}, 1), waiting: map[bus.Position]chan bus.Result{}, crew: crew{said: map[string]string{}}}, nil
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

// Run returns the ID of the run.
func (c *Caller) Run() string { return c.o.Run }

var errNotBegun = errors.New("the run has not begun at the servers")

// ended returns why the work ended; nil: it continues.
func (c *Caller) ended() error {
	if c.work.Err() == nil {
		return nil
	}
	return context.Cause(c.work)
}

// maxItems is how many items may be under way, since they are in memory.
const maxItems = 1 << 16

// Window implements engine.Remote. It returns the maximum number of batches under way.
func (c *Caller) Window(items int) int { return max(maxItems/max(items, 1), 2) }
