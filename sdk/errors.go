package sdk

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// RowErrors fails single rows of a batch: row number to cause. A method
// returns it together with the results of the other rows.
type RowErrors map[int]error

func (e RowErrors) Error() string {
	for row, err := range e {
		if len(e) == 1 {
			return fmt.Sprintf("row %d: %v", row, err)
		}
		return fmt.Sprintf("%d rows failed, row %d among them: %v", len(e), row, err)
	}
	return "no row failed"
}

// Code says what the engine may do about an error.
type Code uint8

// The codes of an error. An error without one counts as CodeInternal.
const (
	CodeInternal  Code = iota // an error of the stage itself
	CodeInvalid               // the same input will fail again
	CodeTransient             // another try may succeed
	CodeCancelled
	CodeDeadline
	CodeUnavailable // a service that the stage needs is down: not worth another try now
	CodeStopped     // the stage has to stop: the budget of the run is spent, or its service stays down
	CodeRefused     // a service will not work on this row: a content filter, a text that is too long
)

// Error is an error with a code. Err's text should say what to do next.
type Error struct {
	Code       Code
	RetryAfter time.Duration // CodeTransient: the least time to wait; 0: no opinion
	Err        error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Invalid says that the input is wrong: no retry will help.
func Invalid(err error) error { return &Error{Code: CodeInvalid, Err: err} }

// Refused says that a service will not work on this row, whoever asks: its content filter
// took it, or it is too long. A voter abstains then where others have voted.
func Refused(err error) error { return &Error{Code: CodeRefused, Err: err} }

// Transient says that another try may succeed, not before after has passed.
func Transient(err error, after time.Duration) error {
	return &Error{Code: CodeTransient, RetryAfter: after, Err: err}
}

// ErrCrashed says that a stage's process ended each time it worked on a batch.
var ErrCrashed = errors.New("the stage's process ended")

// ArgumentError says that one argument of a stage's config is wrong. Open and
// Validates functions return it (or several, with errors.Join) so that the engine
// can point at the very element.
type ArgumentError struct {
	Argument string   // empty: the stage as a whole
	Path     []string // from the argument to the element: keys of maps and blocks, indices of lists from 0
	Err      error
}

func (e *ArgumentError) Error() string {
	if e.Argument == "" {
		return e.Err.Error()
	}
	return e.Place() + ": " + e.Err.Error()
}

func (e *ArgumentError) Unwrap() error { return e.Err }

// Place is the element as a file would name it: weights["knn"], stop[2].
func (e *ArgumentError) Place() string {
	place := e.Argument
	for _, step := range e.Path {
		if _, err := strconv.Atoi(step); err != nil {
			step = strconv.Quote(step)
		}
		place += "[" + step + "]"
	}
	return place
}

// ArgumentErrors splits a joined error. An error that names no argument concerns the stage as
// a whole. The result of nil is nil.
func ArgumentErrors(err error) []*ArgumentError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*ArgumentError
		for _, e := range joined.Unwrap() {
			all = append(all, ArgumentErrors(e)...)
		}
		return all
	}
	var of *ArgumentError
	if errors.As(err, &of) {
		return []*ArgumentError{of}
	}
	return []*ArgumentError{{Err: err}}
}

// CodeOf returns the code of the first coded error in err's chain.
func CodeOf(err error) Code {
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return CodeInternal
}
