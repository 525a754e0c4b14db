package table

import (
	"context"
	"fmt"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A reply may report that the call failed.
func TestCheckStatus(t *testing.T) {
	for name, test := range map[string]struct {
		reply  any
		failed bool
	}{
		"success":              {&commonpb.Status{}, false},
		"the status itself":    {&commonpb.Status{Code: 65535, Reason: "no"}, true},
		"within a reply":       {&milvuspb.SearchResults{Status: &commonpb.Status{Code: 100}}, true},
		"a reply without":      {&milvuspb.SearchResults{}, false},
		"something else's own": {struct{}{}, false},
	} {
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
		if err := (&Server{}).check(t.Context(), "method", nil, test.reply, nil, invoke); (err != nil) != test.failed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatPasses(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{status.Error(codes.Unavailable, ""), true},
		{status.Error(codes.DeadlineExceeded, ""), true},
		{context.DeadlineExceeded, true},
		{status.Error(codes.Unauthenticated, ""), false},
		{status.Error(codes.Unimplemented, ""), false},
		{context.Canceled, false},
		{&ServerError{code: 503}, true},
		{&ServerError{code: 901}, true},
		{&ServerError{code: 2000, retriable: true}, true},
		{&ServerError{code: 65535, reason: "delegator closed during wait tsafe: channel not available"}, true},
		{&ServerError{code: 700}, false}, // no such index
		{&ServerError{code: 800}, false}, // no such database
		{&ServerError{code: 100, retriable: true}, false},
		{&ServerError{code: 1100, reason: "invalid parameter"}, false},
	} {
		if got := isTransient(fmt.Errorf("search: %w", test.err)); got != test.want {
			t.Errorf("%#v: %v", test.err, got)
		}
	}
}
