package host

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

// shared is a host that caches in memory and notes how calls end.
type shared struct {
	mu       sync.Mutex
	cache    map[sdk.Key][]byte
	profiles map[string]json.RawMessage
	calls    []sdk.Call
	ends     chan sdk.Result
}

func (s *shared) CacheGet(_ context.Context, keys []sdk.Key) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = s.cache[key]
	}
	return values, nil
}

func (s *shared) CachePut(_ context.Context, key sdk.Key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[key] = value
	return nil
}

func (s *shared) Profile(_ context.Context, endpoint, model string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profiles[endpoint+" "+model], nil
}

func (s *shared) KeepProfile(_ context.Context, endpoint, model string, profile json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profiles[endpoint+" "+model] = profile
	return nil
}

func (s *shared) Acquire(_ context.Context, c sdk.Call) (func(sdk.Result), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	return func(r sdk.Result) { s.ends <- r }, nil
}

// A plugin's process reaches the engine's services, hears no secret of its own back, and frees by
// its death what it holds.
func TestServices(t *testing.T) {
	h, _ := newHost(t)
	s := &shared{cache: map[sdk.Key][]byte{}, profiles: map[string]json.RawMessage{}, ends: make(chan sdk.Result, 9)}
	p := start(t, h, Spec{Host: s, Config: []byte(`{"token": "hush-hush"}`), Secrets: []string{"hush-hush"}})
	if got, err := ask(t, p, "cache"); err != nil || got != "an answer" || len(s.cache) != 1 {
		t.Errorf("got %q, %v, %d values", got, err, len(s.cache))
	}
	if _, err := ask(t, p, "lease"); err == nil {
		t.Error("a process that was killed has answered")
	}
	for range h.limits.attempts {
		if got := <-s.ends; got != (sdk.Result{Status: sdk.StatusLeft, Lost: true}) {
			t.Errorf("a call ended with %+v", got)
		}
	}
	if s.calls[0].Endpoint != "http://(secret).example" {
		t.Errorf("a call goes to %s", s.calls[0].Endpoint)
	}
	if got, err := ask(t, p, "cache"); err != nil || got != "an answer" {
		t.Errorf("of the next process: got %q, %v", got, err)
	}

	// Who has the token and no certificate, or the other way round, gets nothing.
	at, remove, err := h.shared.share(h.temp, s)
	must.Do(t, err)
	defer remove()
	pair, err := tls.X509KeyPair([]byte(at.CertificatePem), []byte(at.KeyPem))
	must.Do(t, err)
	for name, c := range map[string]struct {
		shown []tls.Certificate
		token string
		want  codes.Code
	}{
		"both":           {[]tls.Certificate{pair}, at.Token, codes.OK},
		"no certificate": {nil, at.Token, codes.Unavailable},
		"another token":  {[]tls.Certificate{pair}, "guess", codes.Unauthenticated},
	} {
		config := h.id.serving()
		config.RootCAs, config.Certificates, config.ServerName = config.ClientCAs, c.shown, "localhost"
		conn, err := grpc.NewClient(at.Address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		must.Do(t, err)
		ctx := metadata.AppendToOutgoingContext(t.Context(), wire.TokenKey, c.token)
		_, err = stagepb.NewHostClient(conn).CacheGet(ctx, &stagepb.CacheGetRequest{})
		if status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		_ = conn.Close()
	}
}

// What a stage starts in turn is no plugin.
func TestHandshakeIsForgotten(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{})
	environment, err := ask(t, p, "environment")
	if err != nil || !strings.Contains(environment, "PATH=") {
		t.Fatalf("got %q, %v", environment, err)
	}
	for _, name := range []string{wire.CookieKey, wire.StageKey, "PLUGIN_"} {
		if strings.Contains(environment, name) {
			t.Errorf("%s is in the environment: %s", name, environment)
		}
	}
}

// A process that follows another works with what that one has chosen.
func TestResolvedValuesStay(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{Kind: sdk.KindSample, Use: "chooser"})
	before, err := ask(t, p, "choice")
	if err != nil || !strings.HasPrefix(before, "chosen by ") || p.Resolved()["precision"] != before {
		t.Fatalf("got %q, %v, resolved %v", before, err, p.Resolved())
	}
	if _, err := ask(t, p, "crash"); err == nil {
		t.Fatal("it did not crash")
	}
	if after, err := ask(t, p, "choice"); after != before || err != nil {
		t.Errorf("got %q, %v, before it was %q", after, err, before)
	}
	given := start(t, h, Spec{Kind: sdk.KindSample, Use: "chooser", Config: []byte(`{"precision": "int8"}`)})
	if got, err := ask(t, given, "choice"); got != "int8" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
