package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/sdk/support"
)

// Keeper admits the calls of all holders while it has the claim, which one process has at a time. For its owner a claim lasts
// from before it was written. For other processes it is over when they have seen it unchanged for longer, each by its own clock.
type Keeper struct {
	room  Room
	o     Options
	terms terms
	end   context.CancelFunc
	loop  sync.WaitGroup

	seen  uint64 // revision of another process's claim
	since time.Time
}

func newKeeper(room Room, o Options) *Keeper { return &Keeper{room: room, o: o, terms: o.lasting()} }

// errLost is why a process stops being the keeper, unless it ends.
var errLost = errors.New("the claim is over, and another process may have it")

// Keep makes this process the keeper whenever no other one is, until Close or until ctx ends.
func Keep(ctx context.Context, room Room, o Options) *Keeper {
	k := newKeeper(room, o)
	k.begin(ctx, k.take(ctx), func() bool { return true })
	return k
}

// begin starts the loop of a process that is the keeper while it has the claim (t; nil: it has none yet). It tries to get the
// claim from time to time if wanted allows that.
func (k *Keeper) begin(ctx context.Context, t *term, wanted func() bool) {
	ctx, k.end = context.WithCancel(ctx)
	k.loop.Go(func() {
		for {
			if t != nil {
				k.o.Log.Info("this process keeps the limits")
				err := t.keep(ctx)
				k.o.Log.Info("this process keeps the limits no more", "reason", err)
			}
			if support.SleepFor(ctx, k.terms.every/5+support.Jitter(k.terms.every/5)) != nil {
				return
			}
			if t = nil; wanted() {
				t = k.take(ctx)
			}
		}
	})
}

// Close gives up the claim, so that another process can take it at once.
func (k *Keeper) Close() {
	k.end()
	k.loop.Wait()
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

// take tries to get the claim; nil: another process has it, or the servers cannot be asked.
func (k *Keeper) take(ctx context.Context) *term {
	ctx, done := context.WithTimeout(ctx, k.terms.claim/3)
	defer done()
	r, revision, err := read(ctx, k.room)
	if err == nil && k.held(r, revision) {
		return nil
	}
	var t *term
	if err == nil {
		t = newTerm(k, r, revision)
		if err = t.write(ctx); err == nil {
			return t
		}
		t.end()
	}
	if !errors.Is(err, errLost) {
		k.o.Log.Debug("the limits are not taken over", "error", err)
	}
	return nil
}

// held reports whether another process may still have the claim.
func (k *Keeper) held(r Record, revision uint64) bool {
	if r.ID == "" {
		return false
	}
	now := time.Now()
	if revision != k.seen {
		k.seen, k.since = revision, now
	}
	return now.Sub(k.since) <= k.terms.claim+k.terms.claim/10
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
