package api

import (
	"errors"

	"github.com/racflow/racflow/sdk"
)

// Faults are what is wrong with a config: ArgumentErrors.
type Faults []error

// Need adds a fault of an argument unless it is as it should be.
func (f *Faults) Need(ok bool, argument, text string) {
	if !ok {
		*f = append(*f, &sdk.ArgumentError{Argument: argument, Err: errors.New(text)})
	}
}

// Err is all faults in one error; nil where there are none.
func (f Faults) Err() error { return errors.Join(f...) }

// Take adds an error, if it is one, as the fault of an argument.
func (f *Faults) Take(argument string, err error) {
	if err != nil {
		*f = append(*f, &sdk.ArgumentError{Argument: argument, Err: err})
	}
}
