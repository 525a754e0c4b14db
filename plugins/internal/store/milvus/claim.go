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

// A claim ends by itself this long after its writer last renewed it.
const (
	leaseTime  = 30 * time.Second
	leaseRenew = 8 * time.Second
)

// claim is a row that says which process writes to a collection, and until when. Milvus has no compare-and-swap. So a
// writer first adds its own row and then reads all rows. If two writers come at the same moment, at least one sees
// the other and gives way.
//
// A claim may end while its writer is only suspended. So the writer checks the claims again before it changes rows
// and before its commit counts, and gives way if another writer has one. A write in the moment after such a check can
// still mix with another writer's rows.
type claim struct {
	Holder  string `json:"holder"`
	Process string `json:"process"` // names the process, for people
	Until   int64  `json:"until"`   // in seconds since 1970; clocks of machines may differ a little
	book    book
}

// takeClaim claims a collection, unless another writer has claimed it.
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

// isHeld reports whether the claim is on the server. If another writer has a claim, it returns an error.
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

// looks is how often check looks for the claim: a busy Milvus Lite does not always show a row at once.
const looks = 5

// check makes sure that this claim is valid, and that there is no other.
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

// renew extends the claim's lease.
func (c *claim) renew(ctx context.Context) error {
	c.Until = time.Now().Add(leaseTime).Unix()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return c.book.Upsert(ctx, []table.Row{table.Note(c.key(), string(text))})
}

// release removes the claim.
func (c *claim) release(ctx context.Context) error {
	return c.book.Remove(ctx, table.Keys([]string{c.key()}))
}
