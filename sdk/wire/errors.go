package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeFailure makes a failure of an error. The end of a context counts as
// cancelled or out of time even where the stage gave it no code.
func EncodeFailure(err error) *stagepb.Failure {
	f := &stagepb.Failure{Code: codes[sdk.CodeOf(err)], Message: Valid(err.Error())}
	var coded *sdk.Error
	switch {
	case errors.As(err, &coded):
		after := (coded.RetryAfter + time.Millisecond - 1) / time.Millisecond
		f.RetryAfterMs = uint32(min(max(after, 0), math.MaxUint32))
	case errors.Is(err, context.Canceled):
		f.Code = stagepb.Code_CODE_CANCELLED
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = stagepb.Code_CODE_DEADLINE
	}
	return f
}

// DecodeFailure returns the error of a failure. A code that is unknown, from a
// newer plugin, counts as internal.
func DecodeFailure(f *stagepb.Failure) error {
	code, _ := key(codes, f.GetCode())
	message := Cut(f.GetMessage())
	if message == "" {
		message = "the plugin gave no reason"
	}
	return &sdk.Error{
		Code: code, RetryAfter: time.Duration(f.GetRetryAfterMs()) * time.Millisecond, Err: errors.New(message),
	}
}

// EncodeRowErrors lists the rows that failed alone, in order.
func EncodeRowErrors(failed sdk.RowErrors) []*stagepb.RowError {
	var all []*stagepb.RowError
	for _, row := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, &stagepb.RowError{Row: uint32(row), Failure: EncodeFailure(failed[row])})
	}
	return all
}

// DecodeRowErrors returns the errors of single rows out of n.
func DecodeRowErrors(all []*stagepb.RowError, n int) (sdk.RowErrors, error) {
	if len(all) == 0 {
		return nil, nil
	}
	failed := sdk.RowErrors{}
	for _, e := range all {
		if uint64(e.GetRow()) >= uint64(n) {
			return nil, fmt.Errorf("error for row %d of %d", e.GetRow(), n)
		}
		failed[int(e.Row)] = DecodeFailure(e.GetFailure())
	}
	return failed, nil
}

// EncodeArgumentErrors makes the errors of a config out of one, joined ones one by
// one.
func EncodeArgumentErrors(err error) []*stagepb.ArgumentError {
	var all []*stagepb.ArgumentError
	for _, e := range sdk.ArgumentErrors(err) {
		all = append(all, &stagepb.ArgumentError{Argument: Valid(e.Argument), Path: ValidAll(e.Path), Message: Valid(e.Err.Error())})
	}
	return all
}

// DecodeArgumentErrors returns the errors of a config. Those that name no argument
// are of the stage as a whole.
func DecodeArgumentErrors(all []*stagepb.ArgumentError) []*sdk.ArgumentError {
	var errs []*sdk.ArgumentError
	for _, e := range all {
		errs = append(errs, &sdk.ArgumentError{Argument: e.GetArgument(), Path: e.GetPath(), Err: errors.New(Cut(e.GetMessage()))})
	}
	return errs
}

// EncodePending makes a message of results that come later.
func EncodePending(p *sdk.Pending) *stagepb.Pending {
	after := (p.PollAfter + time.Millisecond - 1) / time.Millisecond
	return &stagepb.Pending{Handle: Valid(p.Handle), PollAfterMs: uint32(min(max(after, 0), math.MaxUint32)), Note: Valid(p.Note)}
}

// DecodePending is the inverse of EncodePending.
func DecodePending(p *stagepb.Pending) (*sdk.Pending, error) {
	if n := len(p.GetHandle()); n == 0 || n > MaxHandle {
		return nil, fmt.Errorf("a handle of pending work has 1 to %d bytes, and this one %d", MaxHandle, n)
	}
	return &sdk.Pending{Handle: p.GetHandle(), PollAfter: time.Duration(p.GetPollAfterMs()) * time.Millisecond, Note: Cut(p.GetNote())}, nil
}
