package run

import (
	"errors"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// ending is the end of a stage, or of the run before that of its input: nothing
// more is begun.
type ending struct {
	once  sync.Once
	begun chan struct{} // closed once it is known
	cause error
}

func newEnding() *ending { return &ending{begun: make(chan struct{})} }

func (e *ending) begin(cause error) {
	e.once.Do(func() {
		e.cause = cause
		close(e.begun)
	})
}

// err returns the cause; nil: nothing ends.
func (e *ending) err() error {
	select {
	case <-e.begun:
		return e.cause
	default:
		return nil
	}
}

// stopOf returns the error by which a stage says that it has to stop, among the
// errors of a call; nil: there is none.
func stopOf(err error) error {
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		for _, err := range rows {
			if stop := stopOf(err); stop != nil {
				return stop
			}
		}
		return nil
	}
	if sdk.CodeOf(err) == sdk.CodeStopped {
		return err
	}
	return nil
}

// stops reports whether the item did not fail, but its stage is stopped.
func (f *Failure) stops() bool { return f != nil && sdk.CodeOf(f.Err) == sdk.CodeStopped }
