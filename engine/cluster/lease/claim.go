package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
)

// Keys of the run's bucket.
const (
	ClaimKey  = "keeper" // a Claim
	LedgerKey = "ledger" // a Ledger
)

// Subjects of the run.
const (
	reports  = "lease-"   // asked, with the ID of the claim: reports
	breakers = "breakers" // told: what was learnt of endpoints
	yields   = "yield"    // told: the caller wants to keep the book
)

// claim is the right to keep the book, of one process at a time. It holds by the clock of who has
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
