package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/serve"
)

// engine is a host that admits one call at a time.
type engine struct {
	mu    sync.Mutex
	kept  map[sdk.Key][]byte
	slot  chan struct{}
	ended chan sdk.Result
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

// sampler hands its host to the test.
type sampler struct{ host chan sdk.Host }

func (s sampler) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	s.host <- nil // wait until the test takes part
	<-ctx.Done()
	return nil, ctx.Err()
}

// start connects a stage with an engine over the wire and returns the stage's
// view of the engine.
func start(t *testing.T, e sdk.Host) (sdk.Host, *remote.Session) {
	t.Helper()
	hosts := make(chan sdk.Host, 1)
	stage := sdk.SampleStage("s", "S.", func(_ context.Context, setup sdk.Setup, _ struct{}) (sdk.Sampler, error) {
		hosts <- setup.Host
		return sampler{hosts}, nil
	})
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	server := serve.NewServer(sdk.Plugin{Name: "p", Stages: []sdk.Stage{stage}}, slog.New(slog.DiscardHandler))
	server.Register(g)
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(func() { server.Close(); g.Stop() })
	conn, err := grpc.NewClient("passthrough:x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := stagepb.NewStageClient(conn)
	if reply, err := client.Configure(t.Context(), &stagepb.ConfigureRequest{Kind: stagepb.Kind_KIND_SAMPLE, Name: "s"}); err != nil || len(reply.Errors) > 0 {
		t.Fatalf("configure: %v, %v", reply, err)
	}
	host := <-hosts
	if _, err := host.CacheGet(t.Context(), []sdk.Key{{}}); err == nil {
		t.Error("the engine was asked before there was a stream")
	}
	session, err := remote.Open(t.Context(), client, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	// A request makes sure that the stream is there.
	working, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		req := &stagepb.Request{Body: &stagepb.Request_Sample{Sample: &stagepb.Sample{Rows: &stagepb.Rows{}}}}
		_, _ = session.Call(working, req)
	}()
	<-hosts
	return host, session
}

func TestKeepAndRecall(t *testing.T) {
	host, _ := start(t, &engine{kept: map[sdk.Key][]byte{}})
	a, b := sdk.KeyOf("a", ""), sdk.KeyOf("", "a")
	for key, value := range map[sdk.Key]string{a: "x", sdk.KeyOf("empty"): ""} {
		if err := host.CachePut(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := host.CacheGet(t.Context(), []sdk.Key{b, a, sdk.KeyOf("empty")})
	if err != nil || got[0] != nil || string(got[1]) != "x" || got[2] == nil || len(got[2]) != 0 {
		t.Errorf("recalled %q, %v", got, err)
	}
	if err := host.CachePut(t.Context(), a, make([]byte, sdk.MaxCached+1)); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a value that is too large: %v", err)
	}
}

func TestNothingIsShared(t *testing.T) {
	host, _ := start(t, nil)
	if _, err := host.Acquire(t.Context(), sdk.Call{}); err == nil {
		t.Error("a call was admitted by nobody")
	}
	if err := host.CachePut(t.Context(), sdk.Key{}, nil); err == nil {
		t.Error("a value was kept by nobody")
	}
}

func TestAdmit(t *testing.T) {
	e := &engine{slot: make(chan struct{}, 1), ended: make(chan sdk.Result, 9)}
	host, session := start(t, e)
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
	if err != nil {
		t.Fatal(err)
	}
	// A second one waits, and is withdrawn: the engine forgets it.
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := host.Acquire(short, sdk.Call{Endpoint: "a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second call: %v", err)
	}
	busy := sdk.Result{Status: sdk.StatusBusy, RetryAfter: 1500 * time.Millisecond, Usage: sdk.Usage{InputTokens: 5, CachedTokens: 4, OutputTokens: 1}, Reason: "why \xff", Lost: true}
	release(busy)
	release(sdk.Result{Status: sdk.StatusOK}) // only the first word counts
	busy.Reason = "why ?"
	expect(busy)
	if _, err := host.Acquire(t.Context(), sdk.Call{Endpoint: "a"}); err != nil {
		t.Fatal(err)
	}
	session.Close() // the plugin is gone without a word
	expect(sdk.Result{Status: sdk.StatusLeft})
}
