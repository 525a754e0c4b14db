package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk/support"
)

// Keeper admits the calls of all holders while it has the claim, which one process has at a time. For its owner a claim lasts
// from before it was written. For other processes it is over when they have seen it unchanged for longer, each by its own clock.
type Keeper struct {
	room   Room
	o      Options
	terms  terms
	cancel context.CancelFunc
	ended  chan struct{}

	seen  uint64 // revision of another process's claim
	since time.Time
}

func newKeeper(room Room, o Options) *Keeper {
	return &Keeper{room: room, o: o, terms: o.lasting(), ended: make(chan struct{})}
}

// Why a process stops being the keeper.
var (
	errLost  = errors.New("the claim is over, and another process may have it")
	errYield = errors.New("the caller keeps them")
)

// Keep waits until this process is the keeper, and is it until Close or until ctx ends. A holder that is the keeper gives
// the claim back. If the claim is lost, because the servers could not be reached for longer than it lasts, Keep claims it again.
func Keep(ctx context.Context, room Room, o Options) (*Keeper, error) {
	k := newKeeper(room, o)
	t, err := k.await(ctx)
	if err != nil {
		return nil, err
	}
	ctx, k.cancel = context.WithCancel(ctx)
	go func() {
		defer close(k.ended)
		for {
			err := t.keep(ctx)
			if ctx.Err() != nil {
				return
			}
			k.o.Log.Warn("another process may keep the limits of the run now", "error", err)
			if t, err = k.await(ctx); err != nil {
				if ctx.Err() == nil {
					k.o.Log.Error("this process keeps the limits of the run no more", "error", err)
				}
				return
			}
		}
	}()
	return k, nil
}

// Close gives up the claim, so that another process can take it at once.
func (k *Keeper) Close() {
	k.cancel()
	<-k.ended
}

// await waits for the claim.
func (k *Keeper) await(ctx context.Context) (*term, error) {
	for {
		t, err := k.take(ctx)
		if t != nil || err != nil {
			return t, err
		}
		if err := k.room.Tell(yields, nil); err != nil {
			k.o.Log.Debug("who keeps the limits of the run is not asked for them", "error", err)
		}
		if support.SleepFor(ctx, k.terms.every/5) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// read returns the present record; the zero Record and revision 0: there is none.
func read(ctx context.Context, room Room) (r Record, revision uint64, err error) {
	value, revision, err := room.Get(ctx, Key)
	if err != nil || revision == 0 {
		return r, 0, err
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return r, 0, fmt.Errorf("who keeps the limits of the run cannot be read: %w", err)
	}
	return r, revision, nil
}

// take tries to get the claim; nil: another process has it.
func (k *Keeper) take(ctx context.Context) (*term, error) {
	r, revision, err := read(ctx, k.room)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if r.ID != "" {
		if revision != k.seen {
			k.seen, k.since = revision, now
		}
		if now.Sub(k.since) <= k.terms.claim+k.terms.claim/10 {
			return nil, nil
		}
	}
	t := newTerm(k, r, revision)
	if err := t.write(ctx); err != nil {
		t.end()
		if errors.Is(err, errLost) {
			err = nil
		}
		return nil, err
	}
	return t, nil
}

// swap writes a record, and returns until when the claim lasts. errLost: another process has written one.
func (k *Keeper) swap(ctx context.Context, r Record, revision uint64) (now uint64, until time.Time, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return 0, until, err
	}
	before := time.Now()
	now, err = k.room.Swap(ctx, Key, data, revision)
	if errors.Is(err, bus.ErrRevision) { // or an earlier attempt succeeded without an acknowledgement
		present, at, err := read(ctx, k.room)
		if err != nil {
			return 0, until, err
		}
		if present.ID == "" || present.ID != r.ID {
			return 0, until, errLost
		}
		now, err = k.room.Swap(ctx, Key, data, at)
		if errors.Is(err, bus.ErrRevision) {
			return 0, until, errLost
		}
		return now, before.Add(k.terms.claim), err
	}
	return now, before.Add(k.terms.claim), err
}
