package pending

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/retry"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Work is a stage's work on a batch whose results may come later.
type Work struct {
	Book  *Book  // nil: results that come later are an error
	Stage string // as "sample.mine"
	// Key identifies a row of the batch; see Key.
	Key func(row int) string
	// Call asks the stage about some rows of the batch, or collects with the handle that
	// Handle returns. Its errors are as those of retry.Work.
	Call func(ctx context.Context, rows []int) error
	// Collected is called with rows that are in the book and whose results are there, to
	// Settle them later.
	Collected func(row int, key string)
	// Ended is closed when nothing is waited for any more; Cause says why. Both may be
	// nil.
	Ended <-chan struct{}
	Cause func() error
}

type handleKey struct{}

// Handle is what Work.Call collects with; empty: it asks.
func Handle(ctx context.Context) string {
	handle, _ := ctx.Value(handleKey{}).(string)
	return handle
}

// Do returns once the results for some rows of the batch are there, or an error as
// Call does.
func (w Work) Do(ctx context.Context, rows []int) error {
	if w.Book == nil {
		err := w.Call(ctx, rows)
		if later := new(sdk.Pending); errors.As(err, &later) {
			err = &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("%w, and they are not waited for here", err)}
		}
		return err
	}
	groups, err := w.divide(rows)
	if err != nil {
		return unkept(err)
	}
	if len(groups) == 1 {
		return groups[0].do(ctx)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	failed := sdk.RowErrors{}
	for _, g := range groups {
		all.Go(func() {
			apart := retry.Work{Call: func(ctx context.Context, at []int) error { return w.Do(ctx, pick(g.rows, at)) }}
			for i, err := range apart.Do(ctx, len(g.rows)) {
				if err != nil {
					mu.Lock()
					failed[g.at[i]] = err
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if len(failed) == 0 {
		return nil
	}
	return failed
}

func unkept(err error) error {
	return &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("keep the handle of results that come later: %w", err)}
}

func pick(rows, at []int) []int {
	some := make([]int, len(at))
	for i, n := range at {
		some[i] = rows[n]
	}
	return some
}

// group is rows that have a handle together, or none.
type group struct {
	Work
	handle string
	since  time.Time
	rows   []int
	at     []int // their positions among the rows of Do
	keys   []string
}

func (w Work) divide(rows []int) ([]*group, error) {
	var groups []*group
	by := map[string]*group{}
	for at, row := range rows {
		key := w.Key(row)
		handle, since, err := w.Book.handle(key)
		if err != nil {
			return nil, err
		}
		g := by[handle]
		if g == nil {
			g = &group{Work: w, handle: handle, since: since}
			by[handle], groups = g, append(groups, g)
		}
		g.rows, g.at, g.keys = append(g.rows, row), append(g.at, at), append(g.keys, key)
	}
	return groups, nil
}

// pauses are those of a stage that does not say how long to wait.
var pauses = support.Backoff{First: 2 * time.Second, Max: time.Minute}

// do asks or collects, and waits and collects until the results are there.
func (g *group) do(ctx context.Context) error {
	for polls := 1; ; polls++ {
		err := g.Call(context.WithValue(ctx, handleKey{}, g.handle), g.rows)
		later := new(sdk.Pending)
		if !errors.As(err, &later) {
			return g.collected(err)
		}
		if g.since.IsZero() {
			g.since = time.Now()
		}
		if err := g.Book.keep(g.keys, later.Handle, g.since); err != nil {
			return unkept(err)
		}
		g.handle = later.Handle
		if later.Note != "" {
			g.Book.report(Wait{g.Stage, later.Note, time.Since(g.since)}, later.Handle)
		}
		pause := later.PollAfter
		if pause == 0 {
			pause = pauses.Delay(polls)
		}
		if err := g.wait(ctx, pause, later.Note); err != nil {
			return err
		}
	}
}

// collected forgets rows that failed for good, and passes on those that are there.
func (g *group) collected(err error) error {
	if g.handle == "" {
		return err
	}
	var rows sdk.RowErrors
	if err != nil && !errors.As(err, &rows) {
		if !final(err) {
			return err
		}
		rows = sdk.RowErrors{} // for the error is of the work, and halves of it fare no better
		for i := range g.rows {
			rows[i] = err
		}
		err = rows
	}
	var lost []string
	for i, key := range g.keys {
		switch {
		case rows[i] == nil, sdk.CodeOf(rows[i]) == sdk.CodeRefused: // nobody would answer it
			g.Collected(g.rows[i], key)
		case final(rows[i]):
			lost = append(lost, key)
		}
	}
	if failed := g.Book.Settle(lost); failed != nil {
		return unkept(failed)
	}
	return err
}

// final reports whether an error is one that a collection meets again.
func final(err error) bool {
	code := sdk.CodeOf(err)
	return err != nil && (code == sdk.CodeInvalid || code == sdk.CodeRefused)
}

// wait waits, unless all ends before.
func (g *group) wait(ctx context.Context, pause time.Duration, note string) error {
	for end := time.Now().Add(pause); ; {
		t := time.NewTimer(min(time.Until(end), notice))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-g.Ended:
			t.Stop()
			return g.Cause()
		}
		if waited := time.Since(g.since); waited >= notice {
			g.Book.report(Wait{g.Stage, note, waited}, g.handle)
		}
		if !time.Now().Before(end) {
			return nil
		}
	}
}
