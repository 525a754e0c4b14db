package run

import (
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// ending is the end of a run before that of its input: a stage said that it has
// to end, because its budget is spent, or because its service stays away or serves
// none of its calls and nothing takes over. What needs no more of that stage is
// still answered; nothing new is begun.
type ending struct {
	once  sync.Once
	begun chan struct{} // closed once it is known
	cause error
}

func newEnding() *ending { return &ending{begun: make(chan struct{})} }

// begin looks for the word of a stage among the errors of a call.
func (e *ending) begin(err error) {
	if err == nil {
		return
	}
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		for _, err := range rows {
			e.begin(err)
		}
		return
	}
	if sdk.CodeOf(err) == sdk.CodeStopped {
		e.once.Do(func() {
			e.cause = err
			close(e.begun)
		})
	}
}

// err returns why the run ends; nil: it does not.
func (e *ending) err() error {
	select {
	case <-e.begun:
		return e.cause
	default:
		return nil
	}
}

// stops reports whether the item did not fail but is left for another run.
func (f *Failure) stops() bool { return f != nil && sdk.CodeOf(f.Err) == sdk.CodeStopped }
