package worker

import (
	"errors"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bundle"
)

// lacksError says what a worker needs for a run and does not have, in sentences that say what to do.
type lacksError struct{ what []string }

func (e *lacksError) Error() string { return strings.Join(e.what, "; ") }

// lacking makes a lacksError of an error that says what this machine has not; others may go away by
// themselves.
func lacking(err error) error {
	var bundled *bundle.LacksError
	var different *engine.DifferentError
	var file *engine.DiagnosticsError
	var option *engine.OptionError
	switch {
	case errors.As(err, &bundled):
		return &lacksError{slices.Clone(bundled.Lacks)}
	case errors.As(err, &different):
		return &lacksError{slices.Clone(different.Differences)}
	case errors.As(err, &file):
		return &lacksError{strings.Split(err.Error(), "\n")}
	case errors.As(err, &option):
		return &lacksError{[]string{err.Error()}}
	}
	return err
}
