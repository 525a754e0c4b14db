package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/observe"
)

// Options are what a caller adds to its connection.
type Options struct {
	// Run is the ID of a new run; empty: New makes one. A resumed run has that of its manifest.
	Run     string
	Servers string // as a person names them, for sentences
	State   string // folder whose answers of services workers may ask for; empty: none

	Replicas int           // bus.Config.Replicas
	Claim    time.Duration // bus.Config.Claim

	Say  func(format string, args ...any) // sentences for a person; nil: nobody reads them
	Log  *slog.Logger                     // nil: nothing
	Idle time.Duration                    // after which it is said that nobody takes part; 0: 5 s

	// Spent hears at the end what the workers' calls of services came to; nil: nobody wants to know.
	Spent func(governor.Snapshot)
}

// Caller is a run on many machines. It implements engine.Leaver. Its methods may be called by
// several goroutines at once.
type Caller struct {
	conn *bus.Conn
	o    Options
	host string

	run     *bus.Run
	crew    *crew
	defined *definition.Definition
	after   uint64 // the results of this part are behind that one
	kept    bool   // the caller has a journal, so the run can be resumed
	work    context.Context
	stop    context.CancelCauseFunc // ends work
	parts   sync.WaitGroup          // goroutines of work
	sending errgroup.Group          // batches of a detached run that are being published
	answers *answering
	leave   []func() // ends what serves workers

	room *semaphore.Weighted // batches that may be under way: Window less what is held back
	held int64               // of it: held back until there are more workers
	wide int64               // batches that Window allows

	watched   observe.Observer // nil: nobody watches
	observing sync.Mutex       // what is told last is the newest

	mu      sync.Mutex
	state   definition.CallerState
	stated  uint64 // its revision
	waiting map[bus.Position]chan bus.Result
	items   int   // that travel together
	bytes   int64 // of the batches of a detached run
}

var _ engine.Leaver = (*Caller)(nil)

// New returns the caller of a run that has not begun.
func New(conn *bus.Conn, o Options) (*Caller, error) {
	if o.Run = cmp.Or(o.Run, definition.NewID()); !definition.IsID(o.Run) {
		return nil, fmt.Errorf("%q is not the ID of a run, such as %s", o.Run, definition.NewID())
	}
	o.fill()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Caller{conn: conn, o: o, host: host, waiting: map[bus.Position]chan bus.Result{}}, nil
}

func (o *Options) fill() {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Idle = cmp.Or(o.Idle, 5*time.Second)
}

// Run is the ID of the run; of a resumed one, once it has begun.
func (c *Caller) Run() string {
	if c.defined != nil {
		return c.defined.Run
	}
	return c.o.Run
}

var errNotBegun = errors.New("the run has not begun at the servers")

// go runs a part of the caller's work until that ends.
func (c *Caller) start(do func()) {
	c.parts.Add(1)
	go func() {
		defer c.parts.Done()
		do()
	}()
}

// ended is why the work ended; nil: it goes on.
func (c *Caller) ended() error {
	if c.work.Err() == nil {
		return nil
	}
	return context.Cause(c.work)
}
