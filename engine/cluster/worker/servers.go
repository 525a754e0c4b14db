package worker

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
)

// lookOver is how often a worker looks whether a run is over of whose end it has not heard. Following
// the run's state would bring every worker what all others say.
const lookOver = 2 * time.Second

// natsServers are servers by a connection.
type natsServers struct{ *bus.Conn }

// Room implements servers.
func (s natsServers) Room(ctx context.Context, id string) (room, error) {
	r, err := s.Open(ctx, id)
	if err != nil {
		return nil, s.unlisted(ctx, id, err)
	}
	n := &natsRoom{Run: r, at: s, key: keyOf(s.Name()), look: lookOver}
	over, err := n.over(ctx)
	if over || err != nil {
		return nil, err
	}
	return n, nil
}

// unlisted is nil where a run is not there because it was removed; else why it cannot be opened or
// read. Servers that have just started may not know all that belongs to a run yet, and nobody names
// a run again that was taken for one that is over.
func (s natsServers) unlisted(ctx context.Context, id string, why error) error {
	if !errors.Is(why, bus.ErrNoRun) {
		return why
	}
	listed, err := s.Listed(ctx, id)
	if listed {
		err = why
	}
	return err
}

// noKey are characters of names that keys have not.
var noKey = regexp.MustCompile(`[^-_=.a-zA-Z0-9]+`)

// keyOf is the key of a worker's state.
func keyOf(name string) string { return definition.WorkerPrefix + noKey.ReplaceAllString(name, "_") }

// natsRoom is a run at servers.
type natsRoom struct {
	*bus.Run
	at   natsServers
	key  string        // of this worker's state
	look time.Duration // how often Over looks where it hears nothing
	on   parts
}

// over reports whether the run is over.
func (n *natsRoom) over(ctx context.Context) (bool, error) {
	end, _, err := n.Get(ctx, definition.EndKey)
	if err != nil {
		err = n.at.unlisted(ctx, n.ID(), err)
		return err == nil, err
	}
	return end != nil, nil
}

// Over implements room.
func (n *natsRoom) Over(ctx context.Context) error {
	if over, _ := n.over(ctx); over { // before it listens, which waits for the servers whatever ctx says
		return nil
	}
	ended, begun := n.hear(definition.EndKey), n.hear(definition.CallerKey)
	defer ended.stop()
	defer begun.stop()
	tick := time.NewTicker(n.look)
	defer tick.Stop()
	for {
		if over, _ := n.over(ctx); over {
			return nil
		}
		select {
		case <-ended.rings:
		case <-begun.rings:
			n.follow(ctx)
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// heard rings when something was told to all.
type heard struct {
	rings chan struct{}
	stop  func()
}

// hear listens. Where the servers cannot do that, it never rings, and things take longer.
func (n *natsRoom) hear(on string) heard {
	h := heard{make(chan struct{}, 1), func() {}}
	stop, err := n.Hear(on, func([]byte) {
		select {
		case h.rings <- struct{}{}:
		default:
		}
	})
	if err == nil {
		h.stop = stop
	}
	return h
}

// follow looks which part of the run is on. What was told does not say it: any worker may tell that.
func (n *natsRoom) follow(ctx context.Context) {
	var state definition.CallerState
	text, _, err := n.Get(ctx, definition.CallerKey)
	if err == nil && json.Unmarshal(text, &state) == nil {
		n.on.begin(state.Part)
	}
}

// Take implements room.
func (n *natsRoom) Take(ctx context.Context) (batch, error) {
	b, err := n.Run.Take(ctx)
	if err != nil {
		return batch{}, err
	}
	return batch{Position: b.Position, Data: b.Data, Deliveries: b.Deliveries, Done: b.Done, Return: b.Return, Lost: b.Lost(), Past: n.on.begin(b.Part)}, nil
}

// Tell implements room.
func (n *natsRoom) Tell(ctx context.Context, state definition.Worker) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	_, err = n.Put(ctx, n.key, text)
	return err
}

// Forget implements room.
func (n *natsRoom) Forget(ctx context.Context) error { return n.Delete(ctx, n.key) }
