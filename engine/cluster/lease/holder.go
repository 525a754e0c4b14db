package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk/support"
)

// Holder reports what the calls of a Governor need, and grants it what it gets.
type Holder struct {
	run   *bus.Run
	g     *governor.Governor
	o     Options
	terms terms
	id    string
	log   *slog.Logger
	loops [2]loops // those that end first; then what may keep the book
	stops []func()

	keeper string // whom to ask; empty: it is not known

	mu      sync.Mutex
	heard   time.Time // when it was last answered, or began
	yielded time.Time // when the caller last asked to keep the book
}

// Hold has a Governor, before its first call, keep to what the run is limited by, together with all
// others, until Close or until ctx ends. Where nobody hands that out, it does, until the caller
// wants to.
func Hold(ctx context.Context, run *bus.Run, g *governor.Governor, o Options) (*Holder, error) {
	h := &Holder{run: run, g: g, o: o, terms: o.lasting(), id: o.Name + "." + rand.Text(), log: o.Log, heard: time.Now()}
	g.Together(pipeline.Budget(o.Limits.Budget))
	for subject, hear := range map[string]func([]byte){breakers: h.hear, yields: func([]byte) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.yielded = time.Now()
	}} {
		stop, err := run.Hear(subject, hear)
		if err != nil {
			h.stop()
			return nil, err
		}
		h.stops = append(h.stops, stop)
	}
	h.loops[0].begin(ctx, h.report, h.tell)
	h.loops[1].begin(ctx, h.watch)
	return h, nil
}

// loops run until they are ended.
type loops struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func (l *loops) begin(ctx context.Context, all ...func(context.Context)) {
	ctx, l.cancel = context.WithCancel(ctx)
	for _, loop := range all {
		l.all.Go(func() { loop(ctx) })
	}
}

func (l *loops) end() {
	l.cancel()
	l.all.Wait()
}

func (h *Holder) stop() {
	for _, stop := range h.stops {
		stop()
	}
}

// Close gives back what was granted: no call is admitted any more. Calls that are under way count
// until they would have been over.
func (h *Holder) Close() {
	h.loops[0].end()
	h.leave()
	h.loops[1].end()
	h.stop()
}

// leave tells the keeper, which may be this process, that nothing is needed any more.
func (h *Holder) leave() {
	h.g.Grant(governor.Grant{})
	ctx, done := context.WithTimeout(context.Background(), h.terms.asking())
	defer done()
	r := report{Holder: h.id, Leaving: true, Demand: h.g.Demand(0)}
	for _, n := range r.Limiters {
		if n.InFlight > 0 {
			return
		}
	}
	if _, err := h.ask(ctx, r); err != nil {
		h.log.Debug("limits are not given back before their lease is over", "error", err)
	}
}

// report asks for grants, again and again.
func (h *Holder) report(ctx context.Context) {
	acked, every := uint64(0), h.terms.every
	for ctx.Err() == nil {
		asked := time.Now()
		d := h.g.Demand(acked)
		bounded, done := context.WithTimeout(ctx, h.terms.asking())
		a, err := h.ask(bounded, report{Holder: h.id, Demand: d})
		done()
		switch {
		case err != nil:
			h.log.Debug("no limits are granted", "error", err)
			asked = time.Now() // not again at once
		default:
			acked, every = d.Number, max(a.Every, h.terms.every)
			h.mu.Lock()
			h.heard = time.Now()
			h.mu.Unlock()
			h.g.Grant(governor.Grant{Until: asked.Add(a.Lease), Limiters: a.Limiters, Budget: a.Budget, Spent: a.Spent, Trials: a.Trials})
		}
		if support.SleepFor(ctx, every/10-time.Since(asked)) != nil {
			return
		}
		due := time.NewTimer(every - time.Since(asked))
		select {
		case <-due.C:
		case <-h.g.Wants():
		case <-ctx.Done():
		}
		due.Stop()
	}
}

func (h *Holder) ask(ctx context.Context, r report) (a answer, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	if h.keeper == "" {
		value, revision, err := h.run.Get(ctx, ClaimKey)
		if err != nil {
			return a, err
		}
		var c Claim
		if revision == 0 {
			return a, errNobody
		}
		if err := json.Unmarshal(value, &c); err != nil {
			return a, err
		}
		h.keeper = c.ID
	}
	data, err = h.run.Ask(ctx, reports+h.keeper, data)
	if err == nil && len(data) == 0 {
		err = errLost
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil { // another may have taken its place
		h.keeper = ""
	}
	return a, err
}

var errNobody = errors.New("no process hands out the limits of the run")
