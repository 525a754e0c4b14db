package transaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/backoff"
)

// looks is how often rows are looked for that the server has taken: a busy Milvus Lite
// was seen not to show one at once.
const looks = 5

// check reads the turns and makes sure that nobody else has claimed this one or a
// higher one, and that the claim is still there: in a collection that was dropped and
// made again turns are counted anew.
func (m *turn) check(ctx context.Context) (*snapshot.Turns, error) {
	gone := sdk.Transient(fmt.Errorf("collection %q was dropped by another process: open it again", m.table.Collection), 0)
	return m.look(ctx, gone, func(*snapshot.Turns) bool { return true })
}

// checkRecord checks, too, that the record of the turn is there: then it has committed.
func (m *turn) checkRecord(ctx context.Context) error {
	missing := errors.New("the server does not have the record that it took")
	_, err := m.look(ctx, missing, func(turns *snapshot.Turns) bool { return turns.Records[m.Turn].Commit == m.Turn })
	return err
}

// look reads the turns until they have the claim and are complete; after some time it
// returns the error missing.
func (m *turn) look(ctx context.Context, missing error, complete func(*snapshot.Turns) bool) (*snapshot.Turns, error) {
	for n := 1; ; n++ {
		turns, err := snapshot.ReadTurns(ctx, m.table)
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
		if claimed && complete(turns) {
			return turns, nil
		}
		if n == looks {
			return nil, missing
		}
		if err := backoff.Sleep(ctx, time.Duration(n)*100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}
