package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

func TestGarbagePercent(t *testing.T) {
	for held, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 128 << 20: 50, 4 << 30: 50} {
		if got := garbagePercent(held); got != want {
			t.Errorf("%d bytes held: %d %%, want %d", held, got, want)
		}
	}
}

func TestAfterCollections(t *testing.T) {
	called := make(chan struct{}, 100)
	afterCollections(func() { called <- struct{}{} })
	for range 3 {
		runtime.GC()
		select {
		case <-called:
		case <-time.After(time.Minute):
			t.Fatal("a collection was not noticed")
		}
	}
}

// gate is a prompter that waits until the test lets it pass.
type gate struct {
	pass   chan struct{}
	closed chan struct{}
}

func (g *gate) Close() error { close(g.closed); return nil }

func (g *gate) Prompt(ctx context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	select {
	case <-g.pass:
		return make([][]sdk.Prompt, len(b.Items)), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func connect(t *testing.T, stages ...sdk.Stage) (stagepb.StageClient, *Server) {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	g := grpc.NewServer(wire.ServerOptions()...)
	s := NewServer(sdk.Plugin{Name: "test", Version: "1.0.0", Stages: stages}, slog.New(slog.DiscardHandler))
	s.Register(g)
	go func() { _ = g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); g.Stop() })
	return stagepb.NewStageClient(conn), s
}

func promptRequest() *stagepb.PromptRequest {
	return &stagepb.PromptRequest{Rows: &stagepb.Rows{N: 1, Id: []string{"a"}}}
}

// TestCalls: the rules of the proto for calls before Configure, cancelled, out of time, of another
// kind, or malformed. Alive counts the calls that nobody waits for.
func TestCalls(t *testing.T) {
	g := &gate{pass: make(chan struct{}), closed: make(chan struct{})}
	client, server := connect(t, sdk.PromptStage("gate", "Waits.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Prompter, error) { return g, nil }))
	if _, err := client.Prompt(t.Context(), promptRequest()); status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("a call before Configure: %v", err)
	}
	configure := &stagepb.ConfigureRequest{Kind: stagepb.Kind_KIND_PROMPT, Name: "gate"}
	if reply, err := client.Configure(t.Context(), &stagepb.ConfigureRequest{Name: "gate"}); err != nil || len(reply.Errors) != 1 {
		t.Errorf("a stage of no kind: %v, %v", reply, err)
	}
	if reply, err := client.Configure(t.Context(), configure); err != nil || len(reply.Errors) != 0 {
		t.Fatalf("Configure: %v, %v", reply, err)
	}
	if _, err := client.Configure(t.Context(), configure); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the second Configure: %v", err)
	}

	for what, c := range map[string]struct {
		call func(context.Context) (*stagepb.RowsReply, error)
		code stagepb.Code
	}{
		"malformed": {func(ctx context.Context) (*stagepb.RowsReply, error) {
			broken := promptRequest()
			broken.Rows.N = 5
			return server.Prompt(ctx, broken)
		}, stagepb.Code_CODE_INVALID},
		"of another kind": {func(ctx context.Context) (*stagepb.RowsReply, error) {
			return server.Sample(ctx, &stagepb.SampleRequest{})
		}, stagepb.Code_CODE_INVALID},
		"cancelled": {func(ctx context.Context) (*stagepb.RowsReply, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return server.Prompt(ctx, promptRequest())
		}, stagepb.Code_CODE_CANCELLED},
		"out of time": {func(ctx context.Context) (*stagepb.RowsReply, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			return server.Prompt(ctx, promptRequest())
		}, stagepb.Code_CODE_DEADLINE},
	} {
		if reply, err := c.call(t.Context()); err != nil || reply.GetFailure().GetCode() != c.code || reply.GetRows() != nil {
			t.Errorf("%s: got %v, %v, want code %v", what, reply, err, c.code)
		}
	}

	// Many at a time; a call that nobody waits for counts until its work ends.
	const many = 2 * wire.Window
	ctx, cancel := context.WithCancel(t.Context())
	replies := make(chan error, many)
	for range many {
		go func() {
			reply, err := client.Prompt(t.Context(), promptRequest())
			if err == nil && reply.Failure != nil {
				err = wire.DecodeFailure(reply.Failure)
			}
			replies <- err
		}()
	}
	deaf := &deafContext{Context: ctx, asked: make(chan struct{})}
	ended := make(chan struct{})
	go func() { _, _ = server.Prompt(deaf, promptRequest()); close(ended) }()
	<-deaf.asked
	overdue := func() uint32 {
		reply, err := client.Alive(t.Context(), &stagepb.AliveRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Overdue
	}
	if n := overdue(); n != 0 {
		t.Errorf("%d calls are overdue before one is cancelled", n)
	}
	cancel()
	if n := overdue(); n != 1 {
		t.Errorf("%d calls are overdue, want 1", n)
	}
	close(g.pass)
	for range many {
		if err := <-replies; err != nil {
			t.Error(err)
		}
	}
	<-ended
	if n := overdue(); n != 0 {
		t.Errorf("%d calls are overdue when all have ended", n)
	}
	server.Close()
	select {
	case <-g.closed:
	case <-time.After(time.Minute):
		t.Error("the stage was not closed")
	}
}

// deafContext is a context whose end the stage does not notice.
type deafContext struct {
	context.Context
	asked chan struct{} // closed when the stage waits
	once  sync.Once
}

func (d *deafContext) Done() <-chan struct{} {
	d.once.Do(func() { close(d.asked) })
	return nil
}

func TestPanicInOpen(t *testing.T) {
	client, _ := connect(t, sdk.PromptStage("gate", "Panics.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Prompter, error) { panic("no model") }))
	reply, err := client.Configure(t.Context(), &stagepb.ConfigureRequest{Kind: stagepb.Kind_KIND_PROMPT, Name: "gate"})
	want := regexp.MustCompile(`^panic in the plugin: no model; its log has the whole stack:\n  .*TestPanicInOpen.*\n  \t\S*/serve_test\.go:\d+`)
	if err != nil || len(reply.Errors) != 1 || !want.MatchString(reply.Errors[0].Message) || strings.Contains(reply.Errors[0].Message, "grpc") {
		t.Errorf("got %v, %v", reply, err)
	}
}

// shelf is a store in which only Search and Get work.
type shelf struct {
	sdk.Store
	hits    []sdk.Hits
	entries map[string]sdk.Entry
	got     []string
	asked   sdk.Search
	failed  error
}

func (s *shelf) Search(_ context.Context, _ string, asked sdk.Search, _ []sdk.Query) ([]sdk.Hits, error) {
	s.asked = asked
	return s.hits, s.failed
}

func (s *shelf) Get(_ context.Context, _ string, ids []string) ([]sdk.Entry, error) {
	s.got = append(s.got, ids...)
	entries := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		entries[i] = s.entries[id]
	}
	return entries, nil
}

func TestRetrieveFetchesWhatHitsDoNotCarry(t *testing.T) {
	carried := &sdk.Entry{ID: "b", Label: "y", Text: "two"}
	s := &shelf{
		hits: []sdk.Hits{
			{Dense: []sdk.Hit{{ID: "a", Dense: .9}, {ID: "b", Dense: .8, Entry: carried}, {ID: "gone", Dense: .7}}},
			{Dense: []sdk.Hit{{ID: "a", Dense: .5}}},
		},
		entries: map[string]sdk.Entry{"a": {ID: "a", Label: "x", Text: "one"}},
	}
	r := sdk.Ranking{Fusion: sdk.Fusion{Method: "weighted", DenseWeight: 1}, TopK: 9}
	lists, err := fused{s}.Retrieve(t.Context(), "c", r, make([]sdk.Query, 2))
	want := [][]sdk.Candidate{
		{{ID: "a", Label: "x", Text: "one", Score: .9, Dense: .9}, {ID: "b", Label: "y", Text: "two", Score: .8, Dense: .8}},
		{{ID: "a", Label: "x", Text: "one", Score: .5, Dense: .5}},
	}
	if diff := cmp.Diff(want, lists); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if diff := cmp.Diff([]string{"a", "gone"}, s.got); diff != "" {
		t.Error(diff)
	}
	s.got = nil
	s.hits = []sdk.Hits{{Dense: []sdk.Hit{{ID: "b", Dense: .8, Entry: carried}}}, {Dense: []sdk.Hit{{ID: "b", Dense: .1, Entry: carried}}}}
	lists, err = fused{s}.Retrieve(t.Context(), "c", r, make([]sdk.Query, 2))
	if err != nil || len(s.got) > 0 || lists[1][0].Label != "y" {
		t.Errorf("all entries came with the hits: got %v, %v, and asked for %q", lists, err, s.got)
	}
	s.failed = sdk.RowErrors{1: errors.New("bad vector")}
	var failed sdk.RowErrors
	if lists, err = (fused{s}).Retrieve(t.Context(), "c", r, make([]sdk.Query, 2)); len(lists) != 2 || !errors.As(err, &failed) || len(failed) != 1 {
		t.Errorf("got %v, %v", lists, err)
	}
	s.hits, s.failed = s.hits[:1], nil
	if _, err := (fused{s}).Retrieve(t.Context(), "c", r, make([]sdk.Query, 2)); err == nil {
		t.Error("hits for one of two queries were accepted")
	}
}

// Only fusion needs to look further down a leg than the number of wanted candidates.
func TestRetrieveSearchesNoDeeperThanNeeded(t *testing.T) {
	for _, c := range []struct {
		mode              sdk.Mode
		depth, topK, want int
	}{
		{sdk.ModeHybrid, 240, 60, 240}, {sdk.ModeDense, 240, 60, 60}, {sdk.ModeLexical, 240, 60, 60}, {sdk.ModeDense, 20, 60, 20},
	} {
		s := &shelf{}
		r := sdk.Ranking{Search: sdk.Search{Mode: c.mode, NumCandidates: c.depth}, Fusion: sdk.Fusion{Method: "rrf"}, TopK: c.topK}
		if _, err := (fused{s}).Retrieve(t.Context(), "c", r, nil); err != nil || s.asked.NumCandidates != c.want {
			t.Errorf("%s, depth %d, top %d: searched to %d, want %d (%v)", c.mode, c.depth, c.topK, s.asked.NumCandidates, c.want, err)
		}
	}
}
