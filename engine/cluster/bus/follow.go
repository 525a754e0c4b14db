package bus

import (
	"context"
	"errors"
	"strings"
)

// words is what a server can filter by: whole words.
func words(prefix string) string {
	return prefix[:strings.LastIndex(prefix, ".")+1] + ">"
}

// Change of a key.
type Change struct {
	Key string
	State
	Deleted bool
}

// Follow gives the keys that begin so, as they are now and as they change, until ctx ends or the run is removed; then the channel is
// closed. Of changes that follow each other closely it may give the last alone.
func (r *Run) Follow(ctx context.Context, prefix string) (<-chan Change, error) {
	if _, err := r.c.hasStream(ctx, stateStream(r.id)); err != nil {
		return nil, err
	}
	changes := make(chan Change)
	go func() {
		defer close(changes)
		there := map[string]bool{}
		for m, err := range r.c.tail(ctx, stateStream(r.id), statePrefix(r.id)+words(prefix), 0) {
			if err != nil {
				if !errors.Is(err, ErrNoRun) {
					r.c.log.Warn("the run's state cannot be followed", "err", err)
				}
				return
			}
			change := Change{Key: strings.TrimPrefix(m.subject, statePrefix(r.id)), State: State{notNil(m.data), m.at, m.sequence}, Deleted: m.header.Get(headerKV) != ""}
			if !strings.HasPrefix(change.Key, prefix) || change.Deleted && !there[change.Key] {
				continue
			}
			if there[change.Key] = true; change.Deleted {
				delete(there, change.Key)
			}
			select {
			case changes <- change:
			case <-ctx.Done():
				return
			}
		}
	}()
	return changes, nil
}
