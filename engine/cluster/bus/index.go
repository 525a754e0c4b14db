package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/support"
)

// lookAgain is how often Watch looks whether there is a first run.
const lookAgain = 500 * time.Millisecond

func (c *Conn) entry(ctx context.Context, id string) (*jetstream.RawStreamMsg, error) {
	there, err := c.hasStream(ctx, indexStream)
	if err != nil || !there {
		return nil, err
	}
	return c.last(ctx, indexStream, indexPrefix+id)
}

// unlist takes a run out of the index, without a trace: thousands of runs shall not leave one each.
func (c *Conn) unlist(ctx context.Context, id string) error {
	return c.purge(ctx, indexStream, indexPrefix+id)
}

// Listed says whether the index has a run. What belongs to it may be missing for now: servers that have just started may not know it yet.
func (c *Conn) Listed(ctx context.Context, id string) (bool, error) {
	entry, err := c.entry(ctx, id)
	return entry != nil, err
}

// hasStream is false where the servers say again and again that there is none.
func (c *Conn) hasStream(ctx context.Context, name string) (bool, error) {
	err := c.patient(ctx, operation{stream: name, uses: []string{"$JS.API.STREAM.INFO." + name}, do: func(ctx context.Context, _ bool) error {
		_, err := c.stream(ctx, name)
		return err
	}})
	if errors.Is(err, ErrNoRun) {
		return false, nil
	}
	return err == nil, err
}

// Runs are the IDs of the runs that are there, oldest first.
func (c *Conn) Runs(ctx context.Context) ([]string, error) {
	there, err := c.hasStream(ctx, indexStream)
	if err != nil || !there {
		return nil, err
	}
	entries, err := c.below(ctx, indexStream, indexPrefix, "")
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for id := range entries {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(entries[a].Revision, entries[b].Revision) })
	return ids, nil
}

// Watch gives the IDs of the runs that are there, oldest first, and of others as they begin, until ctx ends; then the channel is closed.
// A run may be over, or be removed, before its ID is read.
func (c *Conn) Watch(ctx context.Context) (<-chan string, error) {
	there, err := c.hasStream(ctx, indexStream)
	if err != nil {
		return nil, err
	}
	ids := make(chan string)
	go func() {
		defer close(ids)
		var after uint64
		for ctx.Err() == nil {
			if there {
				after = c.watch(ctx, after, ids)
			}
			// The first run makes the index, and who watches may not.
			_ = support.SleepFor(ctx, lookAgain)
			there = !c.absent(ctx, indexStream)
		}
	}()
	return ids, nil
}

func (c *Conn) watch(ctx context.Context, after uint64, ids chan<- string) uint64 {
	for m, err := range c.tail(ctx, indexStream, indexPrefix+">", after) {
		if err != nil {
			if ctx.Err() == nil {
				c.log.Warn("runs cannot be watched", "err", err)
			}
			return 0
		}
		after = m.sequence
		select {
		case ids <- strings.TrimPrefix(m.subject, indexPrefix):
		case <-ctx.Done():
			return after
		}
	}
	return after
}
