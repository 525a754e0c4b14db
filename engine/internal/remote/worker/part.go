package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// DefaultState is the state folder if Options names none.
var DefaultState = filepath.Join(".racflow", "worker")

// maxShared is the maximum number of workers that share a state folder.
const maxShared = 256

// folder is where a worker stores what runs need:
//
//	files/   what runs brought, by digest; of all workers that share the folder
//	1/ID/    what this worker works with for the run ID: the pipeline's file and its state
//	2/       the same of another worker; whoever has locked N/lock owns N
type folder struct {
	root string
	own  string
	held *support.File // the lock of own; nil: the system has no locks
}

// openFolder takes a part of a state folder that no other worker uses, and removes what an earlier
// worker left in that part.
func openFolder(state string) (*folder, error) {
	if state == "" {
		state = DefaultState
	}
	root, err := filepath.Abs(state)
	if err != nil {
		return nil, err
	}
	for n := range maxShared {
		f := &folder{root: root, own: filepath.Join(root, strconv.Itoa(n+1))}
		for _, dir := range []string{root, f.Files(), f.own} {
			if err := disk.MakeFolder(dir); err != nil {
				return nil, err
			}
		}
		f.held, err = support.OpenLock(filepath.Join(f.own, "lock"), os.O_RDWR|os.O_CREATE, disk.FileMode)
		switch {
		case err == nil:
			return f, f.clear()
		case errors.Is(err, support.ErrBusy):
			continue
		case errors.Is(err, support.ErrNoLocks): // without locks, no worker can tell which parts are in use
			if f.own, err = os.MkdirTemp(root, "own-*"); err != nil {
				return nil, err
			}
			return f, nil
		default:
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d workers use the folder %s already: give this one another with --state", maxShared, root)
}

// clear removes the data of all runs.
func (f *folder) clear() error {
	all, err := os.ReadDir(f.own)
	for _, e := range all {
		if e.IsDir() {
			err = errors.Join(err, f.Remove(e.Name()))
		}
	}
	return err
}

// Files returns the folder of files by digest.
func (f *folder) Files() string { return filepath.Join(f.root, "files") }

// Run creates the folder of a run, unless it exists: the worker may have left the run for a while.
func (f *folder) Run(id string) (dir string, err error) {
	dir = filepath.Join(f.own, id)
	return dir, disk.MakeFolder(dir)
}

// Remove removes the folder of a run.
func (f *folder) Remove(id string) error { return os.RemoveAll(filepath.Join(f.own, id)) }

// close releases the part of the folder. Its contents stay for the next worker.
func (f *folder) close() error {
	if f.held == nil {
		return os.RemoveAll(f.own)
	}
	return f.held.Close() // the file stays, since another worker may be waiting to lock it
}

// Why a worker leaves a run, besides trouble.
var (
	errOver = errors.New("the run is over")
	errIdle = errors.New("there is nothing to do, and other runs wait")
)

// errLost is why a worker drops a batch.
var errLost = errors.New("the batch is another worker's by now")

// part is a run in which this worker takes part, with its open pipeline.
type part struct {
	*worker
	id       string // ID of the run
	room     room
	pipeline joined
	status   *status
	log      *slog.Logger

	stop context.CancelCauseFunc // stops the taking of batches

	flight singleflight.Group // of batches by position

	mu    sync.Mutex
	under int       // batches under way
	last  time.Time // when one was last taken or ended
}

// work takes batches until ctx ends, the run is over, there has been no work for long, or the
// pipeline is in trouble. It returns the cause after the batches under way have ended.
func (p *part) work(ctx context.Context) error {
	taking, stop := context.WithCancelCause(ctx)
	life, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	p.stop, p.last = stop, time.Now()
	var watches, batches sync.WaitGroup
	watches.Go(func() {
		if p.room.Over(taking) == nil {
			stop(errOver)
		}
	})
	watches.Go(func() { p.idles(taking) })
	p.takeAll(taking, life, &batches)
	why := context.Cause(taking)
	watches.Wait()
	if ctx.Err() != nil {
		p.drains()
	}
	if errors.Is(why, errOver) {
		cut() // no caller waits for the batches under way
	}
	late := time.AfterFunc(p.grace, cut) // returns unfinished batches to the queue
	defer late.Stop()
	batches.Wait()
	if errors.Is(why, errOver) {
		p.status.set(caller.Draining) // the caller waits for the last report of what was spent
	}
	return why
}

// drains marks that no more batches are taken.
func (p *part) drains() {
	p.status.set(caller.Draining)
	p.mu.Lock()
	under := p.under
	p.mu.Unlock()
	if under > 0 {
		p.say("run %s: no more batches are taken; %s under way, for at most %s", p.id, terminal.Plural(under, "batch"), p.grace)
	}
}

// takeAll hands batches to goroutines until ctx ends. Batches under way last until life ends.
func (p *part) takeAll(ctx, life context.Context, batches *sync.WaitGroup) {
	most := max(p.pipeline.Size(), 1)
	if p.jobs != nil {
		most = p.jobs.places
	}
	own := newLine(most)
	for {
		// A goroutine that waits for a batch must not block other runs. It also must not ask for a
		// batch before it has room to work on it, since other workers could.
		if own.enter(ctx) != nil || p.jobs.pass(ctx) != nil {
			return
		}
		b, err := p.room.Take(ctx)
		if err != nil {
			_ = p.leave(fmt.Errorf("batches of the run cannot be taken: %w", err)) // has no effect after ctx has ended
			return
		}
		if p.jobs.enter(ctx) != nil {
			p.giveBack(b)
			return
		}
		batches.Go(func() {
			defer own.leave()
			defer p.jobs.leave()
			p.once(life, b)
		})
	}
}

// leave stops the taking of batches, and returns the reason. The first one stays.
func (p *part) leave(why error) error {
	if errors.Is(why, bus.ErrNoRun) {
		why = errOver
	}
	p.stop(why)
	return why
}

// once answers a batch. If the same batch comes again while it is under way here, because this process was
// suspended or disconnected for longer than its claim lasts, both have the answer of the first.
func (p *part) once(life context.Context, b batch) {
	p.count(1)
	defer p.count(-1)
	lost := false
	_, err, _ := p.flight.Do(b.String(), func() (any, error) {
		err := p.answer(life, b)
		lost = errors.Is(err, errLost)
		return nil, err
	})
	switch {
	case err == nil:
		p.done(life, b)
	case !lost:
		p.giveBack(b)
	}
}

// count counts the batches under way.
func (p *part) count(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under, p.last = p.under+more, time.Now()
}

// idles stops the taking of batches if there was none for a while and other runs wait.
func (p *part) idles(ctx context.Context) {
	tick := time.NewTicker(p.idle)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		idle := p.under == 0 && time.Since(p.last) >= p.idle
		p.mu.Unlock()
		if idle && p.places.others() {
			_ = p.leave(errIdle)
			return
		}
	}
}

// keptFor is how long files stay without a run that needs them.
const keptFor = 14 * 24 * time.Hour

// Work takes part in runs at the servers until ctx ends. Then it takes no more batches, and returns once
// those under way have ended or have been returned to the queue. It waits for unreachable servers.
func Work(ctx context.Context, conn *bus.Conn, o Options) (err error) {
	if o.Engine.Log == nil {
		o.Engine.Log = slog.New(slog.DiscardHandler)
	}
	f, err := openFolder(o.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	kept := shipment.KeptFiles{Dir: f.Files()}
	if err := kept.Trim(time.Now().Add(-keptFor)); err != nil {
		o.Engine.Log.Warn("files that no run has asked for in a long time stay", "folder", kept.Dir, "error", err)
	}
	j := &joiner{conn: conn, folder: f, kept: kept, models: o.Models, base: o.Engine}
	w := o.worker(conn, j.open)
	w.gone = f.Remove
	return w.run(ctx)
}

// worker creates a worker for servers.
func (o Options) worker(conn *bus.Conn, open opener) *worker {
	w := &worker{
		name: conn.Name(), version: engine.Version(), at: natsServers{conn}, open: open,
		gone:   func(string) error { return nil },
		places: newLine(together), idle: idle, grace: o.Grace, say: o.Say, log: o.Engine.Log,
	}
	if o.Jobs > 0 {
		w.jobs = newLine(o.Jobs)
	}
	if w.grace <= 0 {
		w.grace = time.Minute
	}
	if w.say == nil {
		w.say = func(string, ...any) {}
	}
	return w
}
