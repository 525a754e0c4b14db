package milvus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// A turn ends by itself that long after its writer last said that it is at work.
const (
	leaseTime  = 30 * time.Second
	leaseRenew = 8 * time.Second
)

// settled is how long after its record was sent nobody needs what a commit replaced: the
// record counts within Grace, or a later turn has begun without it, and a
// reader that did not know of it has ended within another.
const settled = 2 * Grace

// turn is the right to make one commit, as long as nobody claims a higher one.
//
// Milvus cannot compare and swap, and a call that its caller gave up may still have
// its effect later. So which commits count depends on neither clocks nor on who is
// faster. A writer claims a number above all others, reads what the last commit was,
// and writes that down as the base of its turn: from then on no lower turn can commit.
// Its own commit is done when its record is on the server and still nobody has claimed
// a higher number, because whoever claims one later reads that record. These are the
// two phases of a ballot in Lamport, "The Part-Time Parliament", ACM TOCS 1998.
//
// The lease in the claim only keeps writers from ending each other's turns for nothing.
// Time matters in one place: rows that died, and those of a commit that came too late to
// count, are removed once the record of the commit is settled. Clocks may be apart by
// about a minute.
type turn struct {
	Claim
	table *table.Table
	base  Record
	// disputed reports that a lower turn committed too late to count, and so recently
	// that a reader may have seen that.
	disputed bool
}

// takeTurn begins a turn, unless another writer is at work.
func takeTurn(ctx context.Context, t *table.Table) (*turn, error) {
	before, err := ReadTurns(ctx, t)
	if err != nil {
		return nil, err
	}
	highest := before.Highest()
	if left := time.Until(time.Unix(highest.Until, 0)); left > 0 {
		advice := ""
		if left > leaseTime+time.Second {
			advice = fmt.Sprintf("; that is more than the %v of a lease: set the clocks of the two machines", leaseTime)
		}
		return nil, sdk.Transient(fmt.Errorf("collection %q is written by another process, %s (its lease ends in %v)%s", t.Collection, highest.Process, left.Round(time.Second), advice), time.Second)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	mine := &turn{table: t, Claim: Claim{
		Turn: highest.Turn + 1, Holder: fmt.Sprintf("%016x", rand.Uint64()), Process: fmt.Sprintf("process %d on %s", os.Getpid(), host),
	}}
	if err := mine.renew(ctx); err != nil {
		return nil, err
	}
	now, err := mine.check(ctx, false)
	if err == nil {
		mine.base, err = now.Last()
	}
	if err == nil {
		err = mine.put(ctx, mine.base.Commit, "base")
	}
	if err == nil {
		now, err = mine.check(ctx, false)
	}
	if err != nil {
		_ = mine.release(context.WithoutCancel(ctx))
		return nil, err
	}
	for number, r := range now.Records {
		mine.disputed = mine.disputed || number > mine.base.Commit && time.Since(time.Unix(r.Time, 0)) < settled
	}
	return mine, nil
}

// looks is how often rows are looked for that the server has taken: a busy Milvus Lite
// was seen not to show one at once.
const looks = 5

// check reads the turns and makes sure that nobody else has claimed this one or a
// higher one, that the claim is still there, as in a collection that was dropped and made
// again turns are counted anew, and that the turn has its record, if it is to have committed.
func (m *turn) check(ctx context.Context, committed bool) (*Turns, error) {
	for n := 1; ; n++ {
		turns, err := ReadTurns(ctx, m.table)
		if err != nil {
			return nil, err
		}
		claimed := false
		for _, c := range turns.Claims {
			if c.Holder == m.Holder {
				claimed = true
			} else if c.Turn >= m.Turn {
				return nil, sdk.Transient(fmt.Errorf("collection %q is written by another process, %s", m.table.Collection, c.Process), time.Second)
			}
		}
		switch {
		case claimed && (!committed || turns.Records[m.Turn].Commit == m.Turn):
			return turns, nil
		case n < looks:
		case claimed:
			return nil, errors.New("the server does not have the record that it took")
		default:
			return nil, sdk.Transient(fmt.Errorf("collection %q was dropped by another process: open it again", m.table.Collection), 0)
		}
		if err := support.SleepFor(ctx, time.Duration(n)*100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// renew writes the claim, with a lease that ends later.
func (m *turn) renew(ctx context.Context) error {
	m.Until = time.Now().Add(leaseTime).Unix()
	return m.put(ctx, m.Claim, "claim", m.Holder)
}

// release lets other writers in.
func (m *turn) release(ctx context.Context) error {
	m.Until = 0
	return m.put(ctx, m.Claim, "claim", m.Holder)
}

// put writes a row of the turn.
func (m *turn) put(ctx context.Context, content any, what ...string) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return m.table.PutSystem(ctx, table.System(TurnKey(m.Turn, what...), string(text)))
}
