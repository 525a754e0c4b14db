package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// engine is a host that admits one call at a time.
type engine struct {
	mu       sync.Mutex
	kept     map[sdk.Key][]byte
	profiles map[string]json.RawMessage
	slot     chan struct{}
	ended    chan sdk.Result
}

func (e *engine) CacheGet(_ context.Context, keys []sdk.Key) ([][]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, k := range keys {
		values[i] = e.kept[k]
	}
	return values, nil
}

func (e *engine) CachePut(_ context.Context, key sdk.Key, value []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept[key] = value
	return nil
}

func (e *engine) Profile(_ context.Context, endpoint, model string) (json.RawMessage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if endpoint == "down" {
		return nil, errors.New("the profile is damaged")
	}
	return e.profiles[endpoint+" "+model], nil
}

func (e *engine) KeepProfile(_ context.Context, endpoint, model string, profile json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.profiles[endpoint+" "+model] = profile
	return nil
}

func (e *engine) Acquire(ctx context.Context, c sdk.Call) (func(sdk.Result), error) {
	if c.Endpoint == "down" {
		return nil, &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("it is down")}
	}
	select {
	case e.slot <- struct{}{}:
		return func(o sdk.Result) { <-e.slot; e.ended <- o }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// idle is a voter that does nothing.
type idle struct{}

func (idle) Sample(context.Context, sdk.Batch) ([][]sdk.Sample, error) { return nil, nil }

// listen serves a gRPC server in memory and connects to it.
func listen(t *testing.T, register func(*grpc.Server), options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "s") // the path of a socket must be short, whatever TMPDIR is
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	must.Do(t, err)
	g := grpc.NewServer(wire.ServerOptions()...)
	register(g)
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("unix:"+path, append(append(wire.DialOptions(), options...), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must.Do(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// start connects a stage with an engine. It returns the engine as the stage sees it, and a function
// that ends the stage without notice.
func start(t *testing.T, e sdk.Host) (host sdk.Host, kill func()) {
	t.Helper()
	return startWith(t, e, func(s *wire.HostService) func(*grpc.Server) { return s.Register })
}

func startWith(t *testing.T, e sdk.Host, register func(*wire.HostService) func(*grpc.Server)) (host sdk.Host, kill func()) {
	t.Helper()
	service := &wire.HostService{}
	shared := listen(t, register(service))
	token, remove := service.Share(e)
	t.Cleanup(remove)
	stage := sdk.SampleStage("s", "S.", func(_ context.Context, setup sdk.Setup, _ struct{}) (sdk.Sampler, error) {
		host = setup.Host
		return idle{}, nil
	})
	server := serve.NewServer(sdk.Plugin{Name: "p", Stages: []sdk.Stage{stage}}, slog.New(slog.DiscardHandler))
	t.Cleanup(server.Close)
	reply, err := stagepb.NewStageClient(listen(t, server.Register)).Configure(t.Context(), &stagepb.ConfigureRequest{
		Kind: stagepb.Kind_KIND_SAMPLE, Name: "s", Host: &stagepb.HostAddress{Address: shared.Target(), Token: token},
	})
	if err != nil || len(reply.Errors) > 0 {
		t.Fatalf("configure: %v, %v", reply, err)
	}
	return host, server.Close // with the connection to the engine
}

func TestCache(t *testing.T) {
	host, _ := start(t, &engine{kept: map[sdk.Key][]byte{}})
	a, b := sdk.KeyOf("a", ""), sdk.KeyOf("", "a")
	for key, value := range map[sdk.Key]string{a: "x", sdk.KeyOf("empty"): ""} {
		must.Do(t, host.CachePut(t.Context(), key, []byte(value)))
	}
	got := must.Get(host.CacheGet(t.Context(), []sdk.Key{b, a, sdk.KeyOf("empty")}))(t)
	must.Equal(t, "recalled", [][]byte{nil, []byte("x"), {}}, got)
	if err := host.CachePut(t.Context(), a, make([]byte, sdk.MaxCached+1)); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a value that is too large: %v", err)
	}
}

// A profile that is no object, or is too large, is refused; another model has no profile.
func TestProfiles(t *testing.T) {
	e := &engine{profiles: map[string]json.RawMessage{}}
	host, _ := start(t, e)
	for _, profile := range []string{"", "[]", "null", `{"n": `, `{"n": "` + strings.Repeat("x", sdk.MaxProfile) + `"}`} {
		if err := host.KeepProfile(t.Context(), "a", "m", json.RawMessage(profile)); sdk.CodeOf(err) != sdk.CodeInvalid {
			t.Errorf("%.20s: %v", profile, err)
		}
	}
	if profile, err := host.Profile(t.Context(), "a", "m"); err != nil || profile != nil || len(e.profiles) != 0 {
		t.Errorf("got %s, %v of %d", profile, err, len(e.profiles))
	}
	if _, err := host.Profile(t.Context(), "down", "m"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("error %v", err)
	}
}

// A caller without the token of a running stage gets nothing.
func TestToken(t *testing.T) {
	e := &engine{kept: map[sdk.Key][]byte{}}
	service := &wire.HostService{}
	client := stagepb.NewHostClient(listen(t, service.Register))
	token, remove := service.Share(e)
	put := func(token string) codes.Code {
		ctx := metadata.AppendToOutgoingContext(t.Context(), wire.TokenKey, token)
		_, err := client.CachePut(ctx, &stagepb.CachePutRequest{Key: make([]byte, 32)})
		return status.Code(err)
	}
	if _, err := client.CacheGet(t.Context(), &stagepb.CacheGetRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
	for _, c := range []struct {
		token string
		want  codes.Code
	}{{"guess", codes.Unauthenticated}, {token, codes.OK}} {
		if got := put(c.token); got != c.want {
			t.Errorf("token %q: %v", c.token, got)
		}
	}
	remove()
	if got := put(token); got != codes.Unauthenticated {
		t.Errorf("the token of a stage that has ended: %v", got)
	}
	if len(e.kept) != 1 {
		t.Errorf("%d values are cached", len(e.kept))
	}
}

func TestAcquire(t *testing.T) {
	e := &engine{slot: make(chan struct{}, 1), ended: make(chan sdk.Result, 9)}
	host, kill := start(t, e)
	expect := func(want sdk.Result) {
		t.Helper()
		select {
		case got := <-e.ended:
			if got != want {
				t.Errorf("a call ended with %+v, want %+v", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the engine was not told how a call ended")
		}
	}
	if _, err := host.Acquire(t.Context(), sdk.Call{Endpoint: "down"}); sdk.CodeOf(err) != sdk.CodeUnavailable {
		t.Errorf("a service that is down: %v", err)
	}
	release, err := host.Acquire(t.Context(), sdk.Call{Endpoint: "a", Tokens: 3})
	must.Do(t, err)
	// A second one waits, and is withdrawn: the engine forgets it.
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := host.Acquire(short, sdk.Call{Endpoint: "a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second call: %v", err)
	}
	busy := sdk.Result{Status: sdk.StatusBusy, RetryAfter: 1500 * time.Millisecond, Usage: sdk.Usage{InputTokens: 5, CachedTokens: 4, OutputTokens: 1}, Reason: "why \xff", Lost: true}
	release(busy)
	if len(e.ended) != 1 {
		t.Error("release has returned before the engine counted the result")
	}
	release(sdk.Result{Status: sdk.StatusOK}) // only the first result counts
	busy.Reason = "why ?"
	expect(busy)
	if _, err := host.Acquire(t.Context(), sdk.Call{Endpoint: "a"}); err != nil {
		t.Fatal(err)
	}
	kill() // the plugin is gone without notice
	expect(sdk.Result{Status: sdk.StatusLeft, Lost: true})
}
