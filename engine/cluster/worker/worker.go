package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk/support"
)

const (
	// together is how many runs a worker takes part in at a time.
	together = 4
	// idle is how long there is nothing to do in a run before it makes room for others.
	idle = 10 * time.Second
	// lookAgain is how often a worker looks whether it still lacks something.
	lookAgain = 30 * time.Second
)

// pauses are those between attempts to go on where stages could not.
var pauses = support.Backoff{First: time.Second, Max: time.Minute}

// steady is how long a pipeline has to work for its next trouble to count as the first.
const steady = 5 * time.Minute

// servers are where runs are: *bus.Conn.
type servers interface {
	// Watch has the IDs of runs, oldest first, and of those that begin; some again.
	Watch(ctx context.Context) (<-chan string, error)
	// Room opens a run; nil: it is over, or not there any more.
	Room(ctx context.Context, id string) (room, error)
}

// worker takes part in runs.
type worker struct {
	name    string
	version string // of racflow
	at      servers
	open    opener
	gone    func(id string) error // removes what is kept of a run that is over
	places  *line                 // of runs
	jobs    *line                 // of batches; nil: each run has its own
	idle    time.Duration
	grace   time.Duration
	again   *bell
	say     func(format string, args ...any)
	log     *slog.Logger
}

// run takes part in runs until ctx ends.
func (w *worker) run(ctx context.Context) error {
	ids, err := w.at.Watch(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex
	followed := map[string]bool{}
	for {
		var id string
		var more bool
		select {
		case id, more = <-ids:
		case <-ctx.Done():
			return nil
		}
		if !more {
			if ctx.Err() != nil {
				return nil
			}
			return errors.New("the servers do not say any more which runs there are")
		}
		mu.Lock()
		if !followed[id] {
			followed[id] = true
			enter := w.places.stand() // here, so that they come in their order
			all.Go(func() {
				w.follow(ctx, id, enter)
				mu.Lock()
				defer mu.Unlock()
				delete(followed, id)
			})
		}
		mu.Unlock()
	}
}
