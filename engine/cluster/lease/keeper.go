package lease

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/sdk/support"
)

// Options say who takes part.
type Options struct {
	Name string // of the process, for people
	Log  *slog.Logger
	// Limits of the run, of a holder: it keeps to them, and has others keep to them, where nobody
	// hands them out. A keeper is given them.
	Limits Limits

	terms *terms // nil: the usual ones
}

func (o Options) lasting() terms {
	if o.terms != nil {
		return *o.terms
	}
	return usual()
}

// Keeper hands out the limits, the budget and the trial calls of a run, as long as it has the claim.
type Keeper struct {
	run    *bus.Run
	limits Limits
	terms  terms
	log    *slog.Logger
	claim  claim
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	book    *book     // nil: it does not keep it now
	until   time.Time // its claim
	wanted  uint64    // writings of the ledger
	written uint64
	dirty   chan struct{} // has an element where one is wanted
	wrote   chan struct{} // closed after one
}

func newKeeper(run *bus.Run, limits Limits, o Options) *Keeper {
	t := o.lasting()
	return &Keeper{
		run: run, limits: limits, terms: t, log: o.Log, ended: make(chan struct{}),
		claim: claim{run: run, id: rand.Text(), name: o.Name, lasts: t.claim},
		dirty: make(chan struct{}, 1), wrote: make(chan struct{}),
	}
}

// Keep waits until this process may hand out what a run is limited by, and does so until Close or
// until ctx ends. A holder that does so gives it back. Where the claim is lost, because the servers
// could not be reached for longer than it lasts, it is claimed again.
func Keep(ctx context.Context, run *bus.Run, limits Limits, o Options) (*Keeper, error) {
	k := newKeeper(run, limits, o)
	if err := k.await(ctx); err != nil {
		return nil, err
	}
	ctx, k.cancel = context.WithCancel(ctx)
	go func() {
		defer close(k.ended)
		for ctx.Err() == nil {
			err := k.reign(ctx)
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

// await gets the claim.
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

// Close gives the claim up, so that another takes it at once.
func (k *Keeper) Close() {
	k.cancel()
	<-k.ended
}
