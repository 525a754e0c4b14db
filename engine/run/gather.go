package run

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/stage"
)

const (
	// linger is how long a batch waits for more rows after its first one, so
	// that a slow input is answered as it comes.
	linger = 100 * time.Millisecond
	// glance is the same while no other batch is under way: then every moment
	// of waiting is one that the answer comes later.
	glance = 5 * time.Millisecond
)

// read sends rows until there are no more, and closes the channel.
func read(ctx context.Context, next func() (source.Row, error), rows chan<- source.Row) error {
	defer close(rows)
	for {
		row, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case rows <- row:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// underway counts the batches that are being answered.
type underway struct {
	all     sync.WaitGroup
	batches atomic.Int64
	idle    chan struct{} // gets a value when there are none any more; it may be late
}

func (u *underway) begin() {
	u.all.Add(1)
	u.batches.Add(1)
}

func (u *underway) end() {
	defer u.all.Done()
	if u.batches.Add(-1) == 0 {
		select {
		case u.idle <- struct{}{}:
		default: // nobody has taken the last one yet
		}
	}
}

// patience is how long a batch waits for more rows.
func (u *underway) patience() <-chan time.Time {
	if u.batches.Load() == 0 {
		return time.After(glance)
	}
	return time.After(linger)
}

// gather makes a batch of the rows that are there or come soon; none at the
// end.
func (r *Run) gather(ctx context.Context, rows <-chan source.Row, under *underway) []*stage.Record {
	var records []*stage.Record
	var late <-chan time.Time
	for len(records) < r.batch {
		select {
		case row, ok := <-rows:
			if !ok {
				return records
			}
			records = append(records, r.graph.NewRecord(row))
			if late == nil && !r.gathers {
				late = under.patience()
			}
		case <-under.idle:
			if late != nil && under.batches.Load() == 0 {
				late = time.After(glance)
			}
		case <-late:
			return records
		case <-r.graph.Ended():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return records
}
