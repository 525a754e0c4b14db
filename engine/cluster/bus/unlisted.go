package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Unlisted is a run that has streams at the servers and is not in the index: who made or removed it died on the way, or is still at it.
type Unlisted struct {
	*Run           // without its definition
	Made time.Time // the newest of its streams, by the servers' clock
}

var streamForm = regexp.MustCompile(`^(?:KV_)?racflow_(` + idPattern + `)(?:_[a-z]+)?$`)

// Unlisted finds what is left of runs that nobody sees. Streams of others whose names have the form of a run's are among them.
func (c *Conn) Unlisted(ctx context.Context) ([]Unlisted, error) {
	var names []string
	err := c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.NAMES"}, do: func(ctx context.Context, _ bool) error {
		names = nil
		list := c.js.StreamNames(ctx)
		for name := range list.Name() {
			names = append(names, name)
		}
		return list.Err()
	}})
	if err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	listed, err := c.Runs(ctx) // after the streams: those of a run that is entered meanwhile are its own
	if err != nil {
		return nil, err
	}
	made := map[string]time.Time{}
	for _, name := range names {
		m := streamForm.FindStringSubmatch(name)
		if m == nil || name == indexStream || slices.Contains(listed, m[1]) || !slices.Contains(streamNames(m[1]), name) {
			continue
		}
		at, err := c.made(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("list streams: %w", err)
		}
		if at.After(made[m[1]]) {
			made[m[1]] = at
		}
	}
	all := make([]Unlisted, 0, len(made))
	for id, at := range made {
		all = append(all, Unlisted{&Run{c: c, id: id}, at})
	}
	return all, nil
}

// made is when a stream was made; zero: it is not there.
func (c *Conn) made(ctx context.Context, name string) (at time.Time, err error) {
	err = c.patient(ctx, operation{uses: []string{"$JS.API.STREAM.INFO." + name}, do: func(ctx context.Context, _ bool) error {
		s, err := c.js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil
		case err != nil:
			return err
		}
		at = s.CachedInfo().Created
		return nil
	}})
	return at, err
}
