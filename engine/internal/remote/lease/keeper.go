package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk/support"
)

// Options configure a Holder or a Keeper.
type Options struct {
	Name string // of the process, for people
	Log  *slog.Logger
	// Limits of the run, for a Holder: it uses them, and hands them out if no other process does. A
	// Keeper gets its limits from Keep.
	Limits Limits

	terms *terms // nil: the defaults
}

func (o Options) lasting() terms {
	if o.terms != nil {
		return *o.terms
	}
	return usual()
}

// Keeper hands out the limits, the budget and the trial calls of a run while it has the claim.
type Keeper struct {
	run    *bus.Run
	limits Limits
	terms  terms
	log    *slog.Logger
	claim  claim
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	accounts *accounts // nil: it is not the keeper now
	until    time.Time // end of its claim
	wanted   uint64    // number of the last requested write of the ledger
	written  uint64
	dirty    chan struct{} // has an element if a write is requested
	wrote    chan struct{} // closed after each write
}

func newKeeper(run *bus.Run, limits Limits, o Options) *Keeper {
	t := o.lasting()
	return &Keeper{
		run: run, limits: limits, terms: t, log: o.Log, ended: make(chan struct{}),
		claim: claim{run: run, id: rand.Text(), name: o.Name, lasts: t.claim},
		dirty: make(chan struct{}, 1), wrote: make(chan struct{}),
	}
}

// Keep waits until this process may hand out the limits of a run, and does so until Close or until
// ctx ends. A holder that does so gives the claim back. If the claim is lost, because the servers
// could not be reached for longer than it lasts, Keep claims it again.
func Keep(ctx context.Context, run *bus.Run, limits Limits, o Options) (*Keeper, error) {
	k := newKeeper(run, limits, o)
	if err := k.await(ctx); err != nil {
		return nil, err
	}
	ctx, k.cancel = context.WithCancel(ctx)
	go func() {
		defer close(k.ended)
		for ctx.Err() == nil {
			err := k.keepAccounts(ctx)
			if support.SleepFor(ctx, k.terms.claim/6) != nil {
				return
			}
			k.log.Warn("another process may hand out the limits of the run now", "error", err)
			if err := k.await(ctx); err != nil {
				if ctx.Err() == nil {
					k.log.Error("this process hands out the limits of the run no more", "error", err)
				}
				return
			}
		}
	}()
	return k, nil
}

// await waits for the claim.
func (k *Keeper) await(ctx context.Context) error {
	for {
		mine, err := k.claim.take(ctx)
		if mine || err != nil {
			return err
		}
		if err := k.run.Tell(yields, nil); err != nil {
			k.log.Debug("who keeps the limits of the run is not asked for them", "error", err)
		}
		if support.SleepFor(ctx, k.terms.every) != nil {
			return context.Cause(ctx)
		}
	}
}

// Close gives up the claim, so that another process can take it at once.
func (k *Keeper) Close() {
	k.cancel()
	<-k.ended
}

// announcement is an event with its sender.
type announcement struct {
	Holder string `json:"holder"`
	governor.Event
}

// announce sends the Governor's events about endpoints to the other holders.
func (h *Holder) announce(ctx context.Context) {
	for {
		select {
		case e := <-h.g.Learnt():
			data, err := json.Marshal(announcement{h.id, e})
			if err == nil {
				err = h.run.Tell(breakers, data)
			}
			if err != nil {
				h.log.Debug("what was learnt of a service is not announced", "endpoint", e.Endpoint, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (h *Holder) hear(data []byte) {
	var t announcement
	if err := json.Unmarshal(data, &t); err != nil {
		h.log.Debug("what another learnt of a service cannot be read", "error", err)
		return
	}
	if t.Holder != h.id {
		h.g.Hear(t.Event)
	}
}

// Limits are the limits for the calls of a run on all machines together: all that a keeper has to
// know. The definition of a run contains them as JSON.
type Limits struct {
	Blocks []Limit `json:"blocks,omitempty"` // the limit blocks that stages of the run name, each once
	// Endpoint limits the concurrent calls at each endpoint whose stages name no limit block.
	Endpoint int    `json:"endpoint"`
	Budget   Amount `json:"budget,omitzero"` // 0: no limit
	// Spent already counts towards the budget: the cost of building the knowledge, for example.
	Spent Amount `json:"spent,omitzero"`
	// Part is the part of the run, from 1 (0 means 1). What earlier parts spent does not count.
	Part int `json:"part,omitempty"`
}

// Limit is a limit block.
type Limit struct {
	Name        string `json:"name"`
	Concurrency int    `json:"concurrency"`        // concurrent calls
	Requests    int    `json:"requests,omitempty"` // per minute; 0: no limit
	Tokens      int    `json:"tokens,omitempty"`   // input plus output per minute; 0: no limit
}

// LimitsOf returns the limits of a pipeline's calls. The pipeline's own budget replaces missing
// values of budget. The caller sets Spent and Part.
func LimitsOf(p *pipeline.Pipeline, budget pipeline.Budget) Limits {
	limits := Limits{Endpoint: grammar.DefaultConcurrency, Budget: Amount{
		Cost: cmp.Or(budget.Cost, p.Budget.Cost), Tokens: cmp.Or(budget.Tokens, p.Budget.Tokens),
	}}
	seen := map[string]bool{}
	add := func(stages []*pipeline.Stage) {
		for _, s := range stages {
			if l := s.Limit; s.Enabled && l != nil && !seen[l.Name] {
				seen[l.Name] = true
				limits.Blocks = append(limits.Blocks, Limit{Name: l.Name, Concurrency: l.Concurrency, Requests: l.Requests, Tokens: l.Tokens})
			}
		}
	}
	add(p.Stages)
	for _, k := range p.Knowledge() {
		add(k.Stages())
	}
	return limits
}

// watch takes over the claim if no keeper answers.
func (h *Holder) watch(ctx context.Context) {
	k := newKeeper(h.run, h.o.Limits, h.o)
	for support.SleepFor(ctx, h.terms.every+mrand.N(h.terms.every)) == nil {
		h.mu.Lock()
		waits := time.Since(h.heard) < h.terms.claim/6 || time.Since(h.yielded) < h.terms.claim
		h.mu.Unlock()
		if waits {
			continue
		}
		bounded, done := context.WithTimeout(ctx, h.terms.claim/3)
		mine, err := k.claim.take(bounded)
		done()
		if err != nil {
			h.log.Debug("the limits of the run are not taken over", "error", err)
		}
		if mine {
			h.log.Info("nobody hands out the limits of the run: this process does")
			err := h.stand(ctx, k)
			h.log.Info("this process hands out the limits of the run no more", "reason", err)
		}
	}
}

// stand acts as keeper until the caller asks to be.
func (h *Holder) stand(ctx context.Context, k *Keeper) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, err := h.run.Hear(yields, func([]byte) { cancel(errYield) })
	if err != nil {
		return err
	}
	defer stop()
	return k.keepAccounts(ctx)
}
