package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/remote/sharing"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/sdk/support"
)

// joiner opens the pipelines of runs.
type joiner struct {
	conn   *bus.Conn
	folder *folder
	kept   shipment.KeptFiles
	models []string
	base   engine.Options
}

// opened is a pipeline that takes part in a run.
type opened struct {
	*engine.Pipeline
	size   int
	keep   journal.Keep // the items whose details the run's journal stores
	lists  bool         // candidates in lists have texts
	shared *sharing.Client
	holder *lease.Holder // of the run's limits; nil: no stage calls a service

	mu    sync.Mutex
	ended error // why the stages cannot continue here; it stays set
}

// open fetches what the run needs, and opens its pipeline, which ends with ctx.
func (j *joiner) open(ctx context.Context, at room, d *caller.Definition) (joined, error) {
	r := at.(*natsRoom).Run
	p := &opened{keep: d.Keep, lists: d.Lists}
	if err := p.join(ctx, j, r, d); err != nil {
		p.Close()
		return nil, lacking(err)
	}
	return p, nil
}

// join opens the pipeline step by step.
func (p *opened) join(ctx context.Context, j *joiner, r *bus.Run, d *caller.Definition) error {
	dir, err := j.folder.Run(r.ID())
	if err != nil {
		return err
	}
	file, o, err := d.Bundle.Unpack(ctx, j.conn, shipment.BundlePlace{State: dir, Kept: j.kept, Models: j.models, Plugins: j.base.Plugins, Getenv: j.base.Getenv})
	if err != nil {
		return err
	}
	if err := j.kept.Get(ctx, j.conn, d.Files, dir); err != nil {
		return fmt.Errorf("files of the run: %w", err)
	}
	o.Builtin, o.Start, o.Observe, o.Log, o.Events = j.base.Builtin, j.base.Start, j.base.Observe, j.base.Log, j.base.Events
	o.Part, o.Lists, o.Keep = &engine.Part{Manifest: d.Manifest, Spend: d.Spend}, d.Lists, d.Keep
	shared := sharing.New(ctx, j.conn, bus.Worker, o.Log)
	p.shared = shared
	o.Services = &engine.Services{
		Mode:         d.Mode,
		ShareAnswers: shared.Answers,
		Responses:    func(local *cache.Cache) governor.Responses { return bus.NewAnswersCache(ctx, local, r) },
		Governed: func(g *governor.Governor) (err error) {
			p.holder, err = lease.Hold(ctx, r, g, lease.Options{Limits: d.Limits, Share: shared.Limit, Name: j.conn.Name(), Log: o.Log})
			if err == nil {
				g.AdmitBy(p.holder)
			}
			return err
		},
	}
	if p.Pipeline, err = engine.Open(ctx, file, o); err != nil {
		return err
	}
	if err := p.Join(ctx); err != nil {
		return err
	}
	ready, err := p.Start(ctx) // returns at once: Join has started it
	if err != nil {
		return err
	}
	_, p.size = ready.Size()
	p.keep = cmp.Or(d.Keep, journal.Keep(p.Definition().Journal.Keep))
	return nil
}

// Size implements joined.
func (p *opened) Size() int { return p.size }

// Take implements joined.
func (p *opened) Take(ctx context.Context, o run.Order) (run.Answers, error) {
	a, err := p.Pipeline.Take(ctx, o)
	return packet.Trim(a, p.keep, p.lists), err
}

// Trouble implements joined. A used-up budget is not this machine's trouble but the run's.
func (p *opened) Trouble(a run.Answers) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	if err := p.Workspace().Failed(); err != nil {
		p.ended = fmt.Errorf("a stage is not started any more here: %w", err)
		return p.ended
	}
	why := a.Ended
	if why == nil && len(a.Halted) > 0 {
		why = a.Halted[0]
	}
	if why != nil && p.Workspace().Again() { // a service stayed down, or denied its calls
		p.ended = fmt.Errorf("a stage had to stop here: %w", why)
	}
	return p.ended
}

// Calls implements joined.
func (p *opened) Calls() governor.Snapshot {
	calls, _ := p.Workspace().Spent()
	return calls
}

// Close implements joined.
func (p *opened) Close() {
	if p.Pipeline != nil {
		p.Pipeline.Close()
	}
	if p.holder != nil {
		p.holder.Close()
	}
	if p.shared != nil {
		p.shared.Close()
	}
}

// Options configure a worker. Only Engine.Builtin is required.
type Options struct {
	// Engine has the built-in stages, plugins under development, the observer and the log. The
	// worker sets everything that depends on a run, such as its state folder.
	Engine engine.Options
	Models []string                         // folders of models in addition to the user's own
	Jobs   int                              // batches at the same time, of all runs together; 0: as many as each pipeline has under way in a run on one machine
	State  string                           // folder for the data of runs; empty: DefaultState
	Grace  time.Duration                    // how long batches under way may take after ctx has ended; 0: a minute
	Say    func(format string, args ...any) // prints lines for people; nil: nothing is printed
}

// lookOver is how often a worker checks whether a run has ended without a message. Following the
// run's state instead would send every worker the states of all others.
const lookOver = 2 * time.Second

// natsServers implements servers with a connection.
type natsServers struct{ *bus.Conn }

// Room implements servers.
func (s natsServers) Room(ctx context.Context, id string) (room, error) {
	r, err := s.Open(ctx, id)
	if err != nil {
		return nil, s.unlisted(ctx, id, err)
	}
	n := &natsRoom{Run: r, at: s, key: keyOf(s.Name()), look: lookOver}
	over, err := n.over(ctx)
	if over || err != nil {
		return nil, err
	}
	return n, nil
}

// unlisted returns nil for a run that was removed, else why it cannot be opened or read. It checks
// the index, because servers that have just started may not know all streams of a run yet, and a
// run that a worker takes for removed is never announced again.
func (s natsServers) unlisted(ctx context.Context, id string, why error) error {
	if !errors.Is(why, bus.ErrNoRun) {
		return why
	}
	listed, err := s.Listed(ctx, id)
	if listed {
		err = why
	}
	return err
}

// noKey matches characters that are valid in names but not in keys.
var noKey = regexp.MustCompile(`[^-_=.a-zA-Z0-9]+`)

// keyOf returns the key of a worker's state.
func keyOf(name string) string { return caller.WorkerPrefix + noKey.ReplaceAllString(name, "_") }

// natsRoom is a run at the servers.
type natsRoom struct {
	*bus.Run
	at   natsServers
	key  string        // of this worker's state
	look time.Duration // how often Over checks the key if no message comes
}

func (n *natsRoom) over(ctx context.Context) (bool, error) {
	end, _, err := n.Get(ctx, caller.EndKey)
	if err != nil {
		err = n.at.unlisted(ctx, n.ID(), err)
		return err == nil, err
	}
	return end != nil, nil
}

// Over implements room.
func (n *natsRoom) Over(ctx context.Context) error {
	if over, _ := n.over(ctx); over { // before it listens, which waits for the servers even after ctx has ended
		return nil
	}
	rings := make(chan struct{}, 1)
	if stop, err := n.Hear(caller.EndKey, func([]byte) {
		select {
		case rings <- struct{}{}:
		default:
		}
	}); err == nil { // else it only looks
		defer stop()
	}
	tick := time.NewTicker(n.look)
	defer tick.Stop()
	for {
		if over, _ := n.over(ctx); over {
			return nil
		}
		select {
		case <-rings:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Take implements room.
func (n *natsRoom) Take(ctx context.Context) (batch, error) {
	b, err := n.Run.Take(ctx)
	if err != nil {
		return batch{}, err
	}
	return batch{Position: b.Position, Data: b.Data, Deliveries: b.Deliveries, Done: b.Done, Return: b.Return, Lost: b.Lost()}, nil
}

// Tell implements room.
func (n *natsRoom) Tell(ctx context.Context, state caller.WorkerState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	_, err = n.Put(ctx, n.key, text)
	return err
}

const (
	// together is how many runs a worker takes part in at the same time.
	together = 4
	// idle is how long a run may have no work before it makes room for others.
	idle = 10 * time.Second
	// lookAgain is how often a worker checks whether it still lacks something.
	lookAgain = 10 * time.Second
)

// pauses are the pauses between attempts after a run could not be opened, or its stages could not
// continue.
var pauses = support.Backoff{First: time.Second, Max: time.Minute}

// steady is how long a pipeline has to work without trouble before the count of attempts starts again.
const steady = 5 * time.Minute

// servers lists runs and opens them; natsServers implements it.
type servers interface {
	// Watch sends the IDs of runs, oldest first, and then those of new runs. It may repeat some.
	Watch(ctx context.Context) <-chan string
	// Room opens a run; nil: it is over, or no longer exists.
	Room(ctx context.Context, id string) (room, error)
}

type worker struct {
	name    string
	version string // of racflow
	at      servers
	open    opener
	gone    func(id string) error // removes the data of a finished run
	places  *line                 // of runs
	jobs    *line                 // of batches; nil: each run has its own
	idle    time.Duration
	grace   time.Duration
	say     func(format string, args ...any)
	log     *slog.Logger
}

// run takes part in runs until ctx ends.
func (w *worker) run(ctx context.Context) error {
	ids := w.at.Watch(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	var followed sync.Map
	for {
		select {
		case id, more := <-ids:
			if !more && ctx.Err() == nil {
				return errors.New("the servers do not say any more which runs there are")
			}
			if _, twice := followed.LoadOrStore(id, true); twice {
				continue
			}
			if w.places.enter(ctx) != nil { // here, so that runs keep their order
				return nil
			}
			all.Go(func() {
				defer followed.Delete(id)
				w.follow(ctx, id)
			})
		case <-ctx.Done():
			return nil
		}
	}
}
