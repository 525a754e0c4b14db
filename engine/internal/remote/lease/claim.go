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

// Keys of the run's bucket.
const (
	ClaimKey  = "keeper" // a Claim
	LedgerKey = "ledger" // a Ledger
)

// Subjects of the run.
const (
	reports  = "lease-"   // asked, with the ID of the claim: reports
	breakers = "breakers" // what was learnt of endpoints
	yields   = "yield"    // the caller wants to keep the accounts
)

// claim is the right to keep the accounts, of one process at a time. It holds by the clock of who has
// it from before it was written, and is over for the others once they have seen it unchanged
// for longer, each by its own clock.
type claim struct {
	run      *bus.Run
	id       string // of the process; no other ever has the same
	name     string // for people
	lasts    time.Duration
	revision uint64
	until    time.Time

	seen  uint64 // another's claim
	since time.Time
}

// Claim is what the bucket has under ClaimKey.
type Claim struct {
	ID   string `json:"id"`
	Name string `json:"name"` // of the process, for people
}

// take tries to get the claim.
func (c *claim) take(ctx context.Context) (mine bool, err error) {
	value, revision, err := c.run.Get(ctx, ClaimKey)
	if err != nil {
		return false, err
	}
	var has Claim
	if revision > 0 {
		if err := json.Unmarshal(value, &has); err != nil {
			return false, fmt.Errorf("who keeps the limits of the run cannot be read: %w", err)
		}
	}
	if now := time.Now(); revision > 0 && has.ID != c.id {
		if revision != c.seen {
			c.seen, c.since = revision, now
		}
		if now.Sub(c.since) <= c.lasts+c.lasts/10 {
			return false, nil
		}
	}
	return c.write(ctx, revision)
}

// renew makes it last again. It is lost where another has taken it.
func (c *claim) renew(ctx context.Context) (mine bool, err error) {
	mine, err = c.write(ctx, c.revision)
	if err == nil && !mine { // an earlier attempt may have been stored without our knowing
		return c.take(ctx)
	}
	return mine, err
}

func (c *claim) write(ctx context.Context, revision uint64) (mine bool, err error) {
	value, err := json.Marshal(Claim{c.id, c.name})
	if err != nil {
		return false, err
	}
	before := time.Now()
	now, err := c.run.Swap(ctx, ClaimKey, value, revision)
	if errors.Is(err, bus.ErrRevision) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.revision, c.until = now, before.Add(c.lasts)
	return true, nil
}

// give gives it up.
func (c *claim) give(ctx context.Context) error {
	if !time.Now().Before(c.until.Add(-c.lasts / 6)) {
		return nil // another may have it by the time it is deleted
	}
	c.until = time.Time{}
	return c.run.Delete(ctx, ClaimKey)
}

// Why a process does not keep the accounts any more.
var (
	errLost  = errors.New("the claim to hand them out is over, and another process may have it")
	errYield = errors.New("the caller hands them out")
)

// keepAccounts keeps the accounts as long as the claim lasts. The error says why it is over.
func (k *Keeper) keepAccounts(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := k.open(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		if err := w.run(ctx); err != nil {
			cancel(err)
		}
	})
	stop, err := k.run.Serve(reports+k.claim.id, func(data []byte) []byte { return k.answer(ctx, data) })
	if err != nil {
		return err
	}
	defer stop()
	err = k.renew(ctx)
	k.mu.Lock()
	k.accounts = nil
	k.mu.Unlock()
	cancel(err)
	if !errors.Is(err, errLost) {
		bounded, done := context.WithTimeout(context.WithoutCancel(ctx), k.terms.claim/3)
		defer done()
		if err := k.claim.give(bounded); err != nil {
			k.log.Debug("the claim to the limits of the run stands until it is over", "error", err)
		}
	}
	return err
}

// renew keeps the claim until ctx ends or it is lost.
func (k *Keeper) renew(ctx context.Context) error {
	for {
		if support.SleepFor(ctx, k.terms.claim/3) != nil {
			return context.Cause(ctx)
		}
		bounded, done := context.WithDeadline(ctx, k.claim.until)
		mine, err := k.claim.renew(bounded)
		done()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && time.Now().Before(k.claim.until):
			k.log.Debug("the claim to the limits of the run is not renewed yet", "error", err)
		case err != nil || !mine:
			return errLost
		}
		k.mu.Lock()
		k.until = k.claim.until
		k.mu.Unlock()
	}
}

// ledgerWriter writes the ledger: one writing at a time, each for all grants that were decided since the
// one before it began.
type ledgerWriter struct {
	k        *Keeper
	revision uint64
	number   uint64
}

// open takes over the ledger and makes it its own: from then on nobody who had the claim before can write it.
func (k *Keeper) open(ctx context.Context) (*ledgerWriter, error) {
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
	k.accounts = takeOver(time.Now(), k.claim.id, l, k.limits, age, k.terms)
	k.until = k.claim.until
	k.mu.Unlock()
	s := &ledgerWriter{k: k, revision: state.Revision, number: l.Number}
	bounded, done := context.WithDeadline(ctx, k.claim.until)
	defer done()
	return s, s.write(bounded)
}

// run writes the ledger whenever that is wanted.
func (s *ledgerWriter) run(ctx context.Context) error {
	for {
		select {
		case <-s.k.dirty:
			if err := s.write(ctx); err != nil {
				return err
			}
			holders := 0
			s.k.mu.Lock()
			if s.k.accounts != nil {
				holders = len(s.k.accounts.holders)
			}
			s.k.mu.Unlock()
			_ = support.SleepFor(ctx, time.Duration(holders)*100*time.Microsecond) // a large ledger is not written all the time
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *ledgerWriter) write(ctx context.Context) error {
	k := s.k
	k.mu.Lock()
	if k.accounts == nil {
		k.mu.Unlock()
		return nil
	}
	l, wanted := k.accounts.ledger(time.Now()), k.wanted
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
	if k.accounts == nil || !time.Now().Before(k.until) {
		k.mu.Unlock()
		return nil
	}
	a, write := k.accounts.report(time.Now(), r)
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
	keeps := k.accounts != nil && time.Now().Before(k.until)
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
