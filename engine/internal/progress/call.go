package progress

import (
	"context"
	"errors"

	"github.com/racflow/racflow/sdk"
)

// CallObserver receives reports of calls of stages.
type CallObserver interface {
	// Call reports a call of a stage. The call gets the returned context, and done is called at its
	// end.
	Call(ctx context.Context, c StageCall) (within context.Context, done func(CallDone))
}

// StageCall is one call of a stage with some items.
type StageCall struct {
	Pipeline, Stage string
	Use             string   // the plugin stage
	Model           string   // named by its config; empty: none
	Kind            sdk.Kind // empty: a retrieve stage
	Rows            int
}

// CallDone says how a call of a stage ended.
type CallDone struct {
	RowErrors int   // rows that failed; others may not have
	Err       error // set: all rows failed
}

// CallEnded returns the CallDone for a call's error; nil is success. Results that come later are no
// errors.
func CallEnded(err error) CallDone {
	var rows sdk.RowErrors
	var later *sdk.Pending
	switch {
	case errors.As(err, &rows):
		d := CallDone{}
		for _, err := range rows {
			if CallEnded(err).Err != nil {
				d.RowErrors++
			}
		}
		return d
	case errors.As(err, &later):
		return CallDone{}
	}
	return CallDone{Err: err}
}
