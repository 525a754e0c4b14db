package milvus

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// A claim ends by itself that long after its writer last said that it is at work.
const (
	leaseTime  = 30 * time.Second
	leaseRenew = 8 * time.Second
)

// claim is a row that says which process writes to a collection, and until when. Milvus cannot compare and
// swap. So a writer first adds a row of its own and then reads all of them: of two that come at the same
// moment, at least one sees the other, and gives way.
//
// The writer of a claim that has ended may have been suspended only. It looks at the claims again before it
// changes rows and before its commit counts, and gives way then. What it writes in the moment after such a
// look may still come between the rows of another writer.
type claim struct {
	Holder  string `json:"holder"`
	Process string `json:"process"` // which it is, for people
	Until   int64  `json:"until"`   // in seconds since 1970; clocks of machines may differ by some
	book    book
}

// takeClaim claims a collection, unless another writer is at work.
func takeClaim(ctx context.Context, b book) (*claim, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	c := &claim{Holder: fmt.Sprintf("%016x", rand.Uint64()), Process: fmt.Sprintf("process %d on %s", os.Getpid(), host), book: b}
	if _, err := c.isHeld(ctx); err != nil {
		return nil, err
	}
	if err = c.renew(ctx); err == nil {
		err = c.check(ctx)
	}
	if err != nil {
		_ = c.release(context.WithoutCancel(ctx))
		return nil, err
	}
	return c, nil
}

func (c *claim) key() string { return c.book.key("claim", c.Holder) }

// isHeld reports whether the claim is on the server. It is an error that another writer has one.
func (c *claim) isHeld(ctx context.Context) (there bool, err error) {
	texts, err := c.book.Notes(ctx, c.book.key("claim", ""))
	for key, text := range texts {
		var other claim
		if err := json.Unmarshal([]byte(text), &other); err != nil {
			return false, c.book.damaged(key, err)
		}
		left := time.Until(time.Unix(other.Until, 0))
		switch {
		case other.Holder == c.Holder:
			there = true
		case left > 0:
			advice := ""
			if left > leaseTime+time.Second {
				advice = fmt.Sprintf("; that is more than the %v of a lease: set the clocks of the two machines", leaseTime)
			}
			return false, sdk.Transient(fmt.Errorf("collection %q is written by another process, %s (its lease ends in %v)%s", c.book.collection, other.Process, left.Round(time.Second), advice), time.Second)
		}
	}
	return there, err
}

// looks is how often the claim is looked for: a busy Milvus Lite was seen not to show a row at once.
const looks = 5

// check makes sure that the claim stands, and no other.
func (c *claim) check(ctx context.Context) error {
	for n := 1; ; n++ {
		there, err := c.isHeld(ctx)
		if err != nil || there {
			return err
		}
		if n == looks {
			return sdk.Transient(fmt.Errorf("collection %q was dropped or taken over by another process: open it again", c.book.collection), 0)
		}
		if err := support.SleepFor(ctx, time.Duration(n)*100*time.Millisecond); err != nil {
			return err
		}
	}
}

// renew writes the claim, with a lease that ends later.
func (c *claim) renew(ctx context.Context) error {
	c.Until = time.Now().Add(leaseTime).Unix()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return c.book.Upsert(ctx, []table.Row{table.Note(c.key(), string(text))})
}

// release lets other writers in.
func (c *claim) release(ctx context.Context) error {
	return c.book.Remove(ctx, table.Keys([]string{c.key()}))
}
