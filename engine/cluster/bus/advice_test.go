package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestPasses(t *testing.T) {
	t.Parallel()
	api := func(status, code int, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{Code: status, ErrorCode: jetstream.ErrorCode(code), Description: text})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{context.DeadlineExceeded, true},
		{nats.ErrTimeout, true},
		{nats.ErrNoResponders, true},
		{jetstream.ErrNoStreamResponse, true},
		{nats.ErrReconnectBufExceeded, true},
		{jetstream.ErrNoHeartbeat, true},
		{errLost, true},
		{api(503, 10008, "JetStream system temporarily unavailable"), true},
		{api(400, 10002, "resource limits exceeded for account"), true},
		{api(503, 10023, "insufficient resources"), true},
		{api(500, 10047, "insufficient storage resources available"), true},
		{api(503, 10077, "maximum bytes exceeded"), true},
		{api(503, 10077, "maximum messages per subject exceeded"), false},
		{api(400, 10005, "no suitable peers for placement, peer offline"), true},
		{api(400, 10005, "no suitable peers for placement"), false},
		{api(400, 10071, "wrong last sequence: 3"), false},
		{api(409, 10158, "duplicate message id is in process"), true},
		{api(404, 10037, "no message found"), false},
		{jetstream.ErrStreamNotFound, false},
		{nats.ErrMaxPayload, false},
		{nats.ErrConnectionClosed, false},
		{nats.ErrPermissionViolation, false},
		{errors.New("another"), false},
	} {
		if got := passes(c.err); got != c.want {
			t.Errorf("%v passes: %v", c.err, got)
		}
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"nats://a:4223,b,c:1":         "nats://a:4223, nats://b:4222, nats://c:1",
		"a":                           "nats://a:4222",
		"tls://u:p@a, b":              "tls://a:4222, tls://b:4222",
		"nats://[::1],nats://[::2]:5": "nats://[::1]:4222, nats://[::2]:5",
	} {
		urls := must.Get(servers(list))(t)
		if got := hosts(urls); got != want {
			t.Errorf("%s: %s", list, got)
		}
		for _, u := range urls[1:] {
			if u.User.String() != urls[0].User.String() {
				t.Errorf("%s: the user is not for all", list)
			}
		}
	}
}
