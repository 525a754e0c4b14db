package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
)

// A silence begins with the first unanswered call and ends with the next answer, even if that is a refusal.
func TestSilence(t *testing.T) {
	gone := fmt.Errorf("read: %w", status.Error(codes.Unavailable, "gone"))
	for name, test := range map[string]struct {
		before, err error
		silent      bool
	}{
		"answered":            {nil, nil, false},
		"refused":             {gone, &ServerError{reason: "no"}, false},
		"answered at last":    {gone, nil, false},
		"gone":                {nil, gone, true},
		"still gone":          {gone, gone, true},
		"no answer":           {nil, context.DeadlineExceeded, true},
		"no answer, by gRPC":  {nil, status.Error(codes.DeadlineExceeded, ""), true},
		"cancelled":           {nil, context.Canceled, false},
		"cancelled meanwhile": {gone, status.Error(codes.Canceled, ""), true},
	} {
		var s silence
		before := s.note(test.before)
		since := s.note(test.err)
		if since.IsZero() == test.silent || !before.IsZero() && test.silent && since != before {
			t.Errorf("%s: silent since %v, before since %v", name, since, before)
		}
	}
}

// Callers wait for an unreachable server once in total, not once per call.
func TestServerStaysAway(t *testing.T) { synctest.Test(t, serverStaysAway) }

func serverStaysAway(t *testing.T) {
	config := ServerConfig{Address: "127.0.0.1:1", CallTimeout: 20 * time.Second, RetryTime: 300 * time.Millisecond}
	s, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	s.connected = &client.GrpcClient{} // the calls here are simulated
	gone := status.Error(codes.Unavailable, "gone")
	attempts := 0
	ask := func(err error) error {
		attempts = 0
		return s.Call(t.Context(), "ask", func(context.Context, *client.GrpcClient, int) error {
			attempts++
			return err
		})
	}
	start := time.Now()
	if err := ask(gone); sdk.CodeOf(err) != sdk.CodeDeadline || !errors.Is(err, gone) || attempts < 2 || time.Since(start) > config.RetryTime {
		t.Errorf("the first call: %d attempts, %v", attempts, err)
	}
	time.Sleep(300 * time.Millisecond)
	if err := ask(gone); sdk.CodeOf(err) != sdk.CodeDeadline || attempts != 1 {
		t.Errorf("the second call: %d attempts, %v", attempts, err)
	}
	if err := ask(nil); err != nil || attempts != 1 {
		t.Errorf("it is back: %d attempts, %v", attempts, err)
	}
	if err := ask(gone); sdk.CodeOf(err) != sdk.CodeDeadline || attempts < 2 {
		t.Errorf("it is gone again: %d attempts, %v", attempts, err)
	}
}

func TestEndpoints(t *testing.T) {
	type endpoint struct {
		address string
		secure  bool
	}
	for address, want := range map[string]endpoint{
		"localhost":              {"localhost:19530", false},
		"10.0.0.1:19000":         {"10.0.0.1:19000", false},
		"http://host":            {"host:19530", false},
		"tcp://[::1]:19530":      {"[::1]:19530", false},
		"https://in01.zilliz.io": {"in01.zilliz.io:443", true},
		"https://host:19530/":    {"host:19530", true},
	} {
		c := ServerConfig{Address: address}
		if got, secure, err := c.endpoint(); err != nil || (endpoint{got, secure}) != want {
			t.Errorf("%s: %s, %v, %v", address, got, secure, err)
		}
	}
}

// No error shows a secret, even if a server or a proxy quotes it.
func TestSecretsInErrors(t *testing.T) {
	s := &Server{Config: ServerConfig{User: "x", Password: "hunter2", Token: "tok-en"}}
	said := "hunter2, tok-en, eDpodW50ZXIy"
	for _, failure := range []error{nil, status.Error(codes.Unauthenticated, said)} {
		invoke := func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			reply.(*commonpb.Status).Code, reply.(*commonpb.Status).Reason = 1400, said
			return failure
		}
		err := s.check(t.Context(), "search", nil, &commonpb.Status{}, nil, invoke)
		if !isUnauthenticated(err) || !strings.Contains(err.Error(), "***, ***, ***") {
			t.Errorf("got %v", err)
		}
	}
}
