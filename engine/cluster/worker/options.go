package worker

import (
	"time"

	"github.com/racflow/racflow/engine"
)

// Options are how a worker works. Only Engine.Builtin is needed.
type Options struct {
	// Engine has the built-in stages, plugins that are being developed, who observes, and the log. What is
	// of a run, its state folder among it, is set for each.
	Engine engine.Options
	Models []string      // folders of models beside the user's own
	Jobs   int           // batches at a time, of all runs together; 0: as many as each pipeline has under way at a time on one machine
	State  string        // folder that keeps what runs bring; empty: DefaultState
	Grace  time.Duration // how long batches that are under way may take once ctx has ended; 0: a minute
	// Again says that something may have changed that the worker lacks; nil: that is looked at now and
	// then only.
	Again <-chan struct{}
	Say   func(format string, args ...any) // lines for people; nil: nobody reads them
}
