package packet

import (
	"errors"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// fault is an error: its text and its code.
type fault struct {
	Text  int           `json:"text,omitempty"`
	Code  sdk.Code      `json:"code,omitempty"`
	After time.Duration `json:"after,omitempty"`
	Of    *failure      `json:"of,omitempty"` // it is an outcome.Failure, and this is all of it
}

// failure is an outcome.Failure.
type failure struct {
	Stage int    `json:"stage,omitempty"`
	Err   *fault `json:"err,omitempty"`
}

func (w *writer) fault(err error) *fault {
	if err == nil {
		return nil
	}
	if f, ok := err.(*outcome.Failure); ok { //nolint:errorlint // one that is wrapped is a text
		return &fault{Of: w.failure(f)}
	}
	out := &fault{Text: w.text(err.Error())}
	var coded *sdk.Error
	if errors.As(err, &coded) {
		out.Code, out.After = coded.Code, coded.RetryAfter
	}
	return out
}

func (r *reader) fault(in *fault) error {
	switch {
	case in == nil:
		return nil
	case in.Of != nil:
		return r.failure(in.Of)
	}
	err := errors.New(r.text(in.Text))
	if in.Code == sdk.CodeInternal && in.After == 0 { // what an error without a code has
		return err
	}
	return &sdk.Error{Code: in.Code, RetryAfter: in.After, Err: err}
}

func (w *writer) failure(f *outcome.Failure) *failure {
	if f == nil {
		return nil
	}
	return &failure{w.text(f.Stage), w.fault(f.Err)}
}

func (r *reader) failure(in *failure) *outcome.Failure {
	if in == nil {
		return nil
	}
	out := &outcome.Failure{Stage: r.text(in.Stage), Err: r.fault(in.Err)}
	if out.Err == nil {
		r.fail("a failure has no error")
	}
	return out
}

// some is failure for one of a list.
func (r *reader) some(in *failure) *outcome.Failure {
	if in == nil {
		r.fail("a failure is missing")
	}
	return r.failure(in)
}
