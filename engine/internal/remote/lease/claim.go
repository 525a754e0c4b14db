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

// Keys in the run's bucket.
const (
	ClaimKey  = "keeper" // value: a Claim
	LedgerKey = "ledger" // value: a Ledger
)

// Subjects of the run.
const (
	reports  = "lease-"   // questions with reports; followed by the ID of the claim
	breakers = "breakers" // news about endpoints
	yields   = "yield"    // the caller asks to become the keeper
)

// claim is the exclusive right to be the keeper. For its owner it lasts from before it was written.
// For other processes it has expired when they have seen it unchanged for longer, each by its own
// clock.
type claim struct {
	run      *bus.Run
	id       string // of the process; unique
	name     string // for people
	lasts    time.Duration
	revision uint64
	until    time.Time

	seen  uint64 // revision of another process's claim
	since time.Time
}

// Claim is the value of ClaimKey.
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

// renew extends the claim. mine is false if another process has taken it.
func (c *claim) renew(ctx context.Context) (mine bool, err error) {
	mine, err = c.write(ctx, c.revision)
	if err == nil && !mine { // an earlier attempt may have succeeded without an acknowledgement
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

// give deletes the claim.
func (c *claim) give(ctx context.Context) error {
	if !time.Now().Before(c.until.Add(-c.lasts / 6)) {
		return nil // it might delete another process's claim
	}
	c.until = time.Time{}
	return c.run.Delete(ctx, ClaimKey)
}

// Why a process stops being the keeper.
var (
	errLost  = errors.New("the claim to hand them out is over, and another process may have it")
	errYield = errors.New("the caller hands them out")
)

// keepAccounts is the keeper's main loop while the claim lasts. The error says why it ended.
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

// renew renews the claim until ctx ends or it is lost.
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

// ledgerWriter writes the ledger, one write at a time. Each write covers all grants decided since
// the previous one began.
type ledgerWriter struct {
	k        *Keeper
	revision uint64
	number   uint64
}

// open takes over the ledger with a write of its own: after that, no earlier owner of the claim can write it.
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
		age = claims[ClaimKey].At.Sub(state.At) - time.Second // clocks of servers differ
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

// run writes the ledger whenever a grant needs it.
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
			_ = support.SleepFor(ctx, time.Duration(holders)*100*time.Microsecond) // do not write a large ledger all the time
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

// answer decides what a reporting holder gets; nil: nothing.
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
