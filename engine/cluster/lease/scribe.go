package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/sdk/support"
)

// scribe writes the ledger: one writing at a time, each for all grants that were decided since the
// one before it began.
type scribe struct {
	k        *Keeper
	revision uint64
	number   uint64
}

// open takes over the ledger and makes it its own: from then on nobody who had the claim before can write it.
func (k *Keeper) open(ctx context.Context) (*scribe, error) {
	states, err := k.run.All(ctx, LedgerKey)
	if err != nil {
		return nil, err
	}
	claims, err := k.run.All(ctx, ClaimKey)
	if err != nil {
		return nil, err
	}
	var l Ledger
	state, age := states[LedgerKey], time.Duration(0)
	if state.Revision > 0 {
		if err := json.Unmarshal(state.Value, &l); err != nil {
			return nil, fmt.Errorf("the ledger of the run cannot be read: %w", err)
		}
		age = claims[ClaimKey].At.Sub(state.At) - time.Second // servers' clocks differ
	}
	k.mu.Lock()
	k.book = takeOver(time.Now(), k.claim.id, l, k.limits, age, k.terms)
	k.until = k.claim.until
	k.mu.Unlock()
	s := &scribe{k: k, revision: state.Revision, number: l.Number}
	bounded, done := context.WithDeadline(ctx, k.claim.until)
	defer done()
	return s, s.write(bounded)
}

// run writes the ledger whenever that is wanted.
func (s *scribe) run(ctx context.Context) error {
	for {
		select {
		case <-s.k.dirty:
			if err := s.write(ctx); err != nil {
				return err
			}
			holders := 0
			s.k.mu.Lock()
			if s.k.book != nil {
				holders = len(s.k.book.holders)
			}
			s.k.mu.Unlock()
			_ = support.SleepFor(ctx, time.Duration(holders)*100*time.Microsecond) // a large ledger is not written all the time
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *scribe) write(ctx context.Context) error {
	k := s.k
	k.mu.Lock()
	if k.book == nil {
		k.mu.Unlock()
		return nil
	}
	l, wanted := k.book.ledger(time.Now()), k.wanted
	k.mu.Unlock()
	s.number++
	l.Number = s.number
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	revision, err := k.run.Swap(ctx, LedgerKey, data, s.revision)
	if errors.Is(err, bus.ErrRevision) {
		return errLost
	}
	if err != nil {
		return err
	}
	s.revision = revision
	k.mu.Lock()
	k.written = wanted
	close(k.wrote)
	k.wrote = make(chan struct{})
	k.mu.Unlock()
	return nil
}

// answer decides what a holder gets that reports; nil: nothing.
func (k *Keeper) answer(ctx context.Context, data []byte) []byte {
	var r report
	if err := json.Unmarshal(data, &r); err != nil || r.Holder == "" {
		k.log.Warn("a report on limits cannot be read", "error", err)
		return nil
	}
	k.mu.Lock()
	if k.book == nil || !time.Now().Before(k.until) {
		k.mu.Unlock()
		return nil
	}
	a, write := k.book.report(time.Now(), r)
	if a != nil && write {
		k.wanted++
		select {
		case k.dirty <- struct{}{}:
		default:
		}
		for wanted := k.wanted; k.written < wanted; {
			wrote := k.wrote
			k.mu.Unlock()
			select {
			case <-wrote:
			case <-ctx.Done():
				return nil
			}
			k.mu.Lock()
		}
	}
	keeps := k.book != nil && time.Now().Before(k.until)
	k.mu.Unlock()
	if a == nil || !keeps {
		return nil
	}
	data, err := json.Marshal(a)
	if err != nil {
		k.log.Warn("a report on limits is not answered", "error", err)
		return nil
	}
	return data
}
