package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

var update = flag.Bool("update", false, "write the examples of the wire anew")

const examples = "../proto/testdata"

// example returns the message of a file, which must equal the given one.
func example[M proto.Message](t *testing.T, name string, made M) M {
	t.Helper()
	file := filepath.Join(examples, name+".txtpb")
	if *update {
		text, err := prototext.MarshalOptions{Multiline: true}.Marshal(made)
		if err == nil {
			header := fmt.Sprintf("# proto-file: stage.proto\n# proto-message: %s\n\n", made.ProtoReflect().Descriptor().FullName())
			err = os.WriteFile(file, append([]byte(header), text...), 0o600)
		}
		must.Do(t, err)
	}
	text, err := os.ReadFile(file)
	must.Do(t, err)
	read := made.ProtoReflect().New().Interface()
	if err := prototext.Unmarshal(text, read); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if !proto.Equal(read, made) {
		t.Errorf("%s has\n%v\nand this was made:\n%v\n(-update writes it anew)", file, read, made)
	}
	return read.(M)
}

// replay is a Conn that puts the examples between engine and plugin. The engine's end must send the
// example's request. The plugin gets the example's request and must return the example's reply, which
// the engine's end reads.
type replay struct {
	*wire.Conn
	t    *testing.T
	name string // of the examples; empty: the method's name
}

func (r *replay) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	name := r.name
	if name == "" {
		name = path.Base(method)
	}
	request = example(r.t, name+".request", request.(proto.Message))
	given := reflect.New(reflect.TypeOf(reply).Elem()).Interface().(proto.Message)
	if err := r.Conn.Invoke(ctx, method, request, given); err != nil {
		return err
	}
	proto.Merge(reply.(proto.Message), example(r.t, name+".reply", given))
	return nil
}

func (r *replay) Fit(ctx context.Context, requests iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error) {
	reply, err := r.Conn.Fit(ctx, func(yield func(*stagepb.FitRequest, error) bool) {
		for request, err := range requests {
			if !yield(example(r.t, "Fit.request", request), err) {
				return
			}
		}
	})
	return example(r.t, "Fit.reply", reply), err
}

// refer starts the reference plugin's stage of a kind.
func refer(t *testing.T, kind sdk.Kind) (*wire.Stage, *replay) {
	t.Helper()
	server := serve.NewServer(reference, slog.New(slog.DiscardHandler))
	t.Cleanup(server.Close)
	conn := listen(t, server.Register)
	client := stagepb.NewStageClient(conn)
	described, err := client.Describe(t.Context(), &stagepb.DescribeRequest{})
	must.Do(t, err)
	plugin, err := wire.DecodePlugin(described)
	must.Do(t, err)
	for _, info := range plugin.Stages {
		if info.Kind != kind {
			continue
		}
		dir := t.TempDir()
		reply, err := client.Configure(t.Context(), &stagepb.ConfigureRequest{Kind: wire.EncodeKind(kind), Name: info.Name, Block: info.Name, StateDir: dir})
		if err != nil || len(reply.Errors) > 0 {
			t.Fatalf("configure: %v, %v", reply, err)
		}
		stage, err := wire.Described(info, dir, reply)
		must.Do(t, err)
		r := &replay{Conn: wire.NewConn(conn), t: t}
		stage.Conn = r
		return stage, r
	}
	t.Fatalf("there is no stage of kind %s", kind)
	return nil, nil
}

// TestExamples replays a request and a reply of every method at both ends of the connection. Authors
// of other SDKs begin with these.
func TestExamples(t *testing.T) {
	ctx := t.Context()
	same := func(want, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	documents := []sdk.Document{{ID: "a.md", Text: "one two", Meta: sdk.Meta{"path": "a.md"}}, {ID: "b.md"}}
	passages := []sdk.Passage{{Document: &documents[0], Chunk: sdk.Chunk{End: 3}}, {Document: &documents[0], Chunk: sdk.Chunk{Start: 4, End: 7}}}
	candidates := []sdk.Candidate{{ID: "x-1", Label: "card_lost", Score: .5, Dense: .5, Lexical: 3}, {ID: "x-2", Label: "pin", Score: .25, Dense: .25, Lexical: sdk.Unscored}}
	batch := sdk.Batch{Labels: []string{"card_lost", "pin"}, Items: []sdk.Item{
		{ID: "1", Text: "where is my card", Candidates: candidates, Samples: []sdk.Sample{{Voter: "first", Answers: []sdk.Answer{{Label: "card_lost", Weight: .75, Accepted: true}}}}},
		{ID: "2", Text: "hello"},
	}}

	chunker, _ := refer(t, sdk.KindChunk)
	chunks, err := chunker.Chunk(ctx, documents)
	same([][]sdk.Chunk{{{End: 3, Meta: sdk.Meta{"part": 1.0}}, {Start: 3, End: 7, Header: sdk.Span{End: 2}}}, nil}, chunks, err)

	enricher, _ := refer(t, sdk.KindEnrich)
	additions, err := enricher.Enrich(ctx, passages)
	same([]sdk.Addition{{Context: "a.md from byte 0", Terms: []string{"what is one"}}, {Context: "a.md from byte 4", Terms: []string{"what is two"}}}, additions, err)

	embedder, _ := refer(t, sdk.KindEmbed)
	err = embedder.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		yield([]sdk.TrainingRow{{ID: "1", Text: "my card is gone", Label: "card_lost"}}, nil)
	})
	state, stateErr := embedder.State()
	if err = errors.Join(err, stateErr); err != nil || !embedder.Fits() || !strings.Contains(string(state), "my card is gone is card_lost\n") {
		t.Errorf("fitted to %q, %v", state, err)
	}
	vectors, err := embedder.Embed(ctx, sdk.RoleQuery, []string{"where is my card", ""})
	same([][]float32{{.6, .8}, {0, 0}}, vectors, err)

	reranker, _ := refer(t, sdk.KindRerank)
	ranked, err := reranker.Rerank(ctx, batch)
	same([][]sdk.Ranked{{{Candidate: 1, Score: 1}, {}}, nil}, ranked, err)

	prompter, _ := refer(t, sdk.KindPrompt)
	prompts, err := prompter.Prompt(ctx, batch)
	if err != nil || prompts[1][0].Messages[1].Text != "hello" || prompts[1][0].None != "none" || len(prompts[1][0].Labels) != 2 {
		t.Errorf("got %+v, %v", prompts, err)
	}

	voter, files := refer(t, sdk.KindSample)
	if voter.Random() != (sdk.Draw{Count: 2, Parts: 2, Shared: true, Seed: 7}) {
		t.Errorf("it wants %+v", voter.Random())
	}
	same(map[string]any{"precision": "float32"}, voter.Resolved(), nil)
	samples, err := voter.Sample(ctx, batch)
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || len(failed) != 1 || sdk.CodeOf(failed[1]) != sdk.CodeTransient || samples[0][0].Answers[0].Label != "card_lost" {
		t.Errorf("got %+v, %v", samples, err)
	}
	files.name = "Sample-pending"
	later := new(sdk.Pending)
	if _, err := voter.Sample(ctx, sdk.Batch{Items: []sdk.Item{{ID: "3", Text: "later"}}}); !errors.As(err, &later) || *later != (sdk.Pending{Handle: "batch-17", PollAfter: time.Hour, Note: "2 of 9 rows are done"}) {
		t.Errorf("got %v", err)
	}
	files.name = "Sample-collected"
	samples, err = voter.CollectSamples(ctx, later.Handle, sdk.Batch{Items: []sdk.Item{{ID: "3", Text: "later"}}})
	if err != nil || samples[0][0].Answers[0].Label != "batch-17 of 3" {
		t.Errorf("got %+v, %v", samples, err)
	}

	elector, _ := refer(t, sdk.KindElect)
	verdicts, err := elector.Elect(ctx, batch)
	same([]sdk.Verdict{{Answer: "card_lost", Agreement: 1, Confidence: .75, Unknown: .25, Labels: []sdk.LabelConfidence{{Label: "card_lost", Confidence: .75}}}, {Reason: "nobody has voted"}}, verdicts, err)

	replayStore(t, same)
	replayOthers(t)
	replayHost(t)
	for _, service := range []string{"Stage", "Host"} {
		methods := stagepb.File_stage_proto.Services().ByName(protoreflect.Name(service)).Methods()
		for i := range methods.Len() {
			for _, end := range []string{".request.txtpb", ".reply.txtpb"} {
				if _, err := os.Stat(filepath.Join(examples, string(methods.Get(i).Name())+end)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func replayStore(t *testing.T, same func(want, got any, err error)) {
	t.Helper()
	ctx := t.Context()
	store, _ := refer(t, sdk.KindStore)
	c, err := store.Open(ctx, "k", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	same(sdk.Collection{Entries: 2, Dimension: 2, Note: []byte("of the engine")}, c, err)
	var failed sdk.RowErrors
	err = store.Put(ctx, "k", []sdk.Entry{{ID: "a", Text: "one", Label: "x", Vector: []float32{1, 0}, Hash: []byte{1, 2}}, {ID: "c", Label: "too long", Vector: []float32{0, 1}}})
	if !errors.As(err, &failed) || len(failed) != 1 || sdk.CodeOf(failed[1]) != sdk.CodeInvalid {
		t.Errorf("got %v", err)
	}
	same(nil, nil, errors.Join(store.Delete(ctx, "k", []string{"c"}), store.Commit(ctx, "k", []byte("of the engine"))))
	only := &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel, Values: []any{"x", "y"}}
	lists, err := store.Retrieve(ctx, "k", sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 60, Texts: true, Norm: 1.5}, Fusion: sdk.Fusion{Method: "rrf", K: 60}, TopK: 2},
		[]sdk.Query{{Text: "one", Vector: []float32{1, 0}, Filter: only}})
	if err != nil || len(lists[0]) != 2 || lists[0][0].Text != "two" || lists[0][0].Dense != .5 {
		t.Errorf("got %+v, %v", lists, err)
	}
	entries, err := store.Get(ctx, "k", []string{"b", "unknown"})
	same([]sdk.Entry{kept[1], {}}, entries, err)
	page, err := store.Scan(ctx, "k", sdk.Scan{Limit: 2, Texts: true, Labels: []string{"x", "y"}})
	same(sdk.Page{Entries: kept, Next: "after b"}, page, err)
	attached, err := store.Attach(ctx)
	same(theirs, attached, err)
	all, err := store.List(ctx)
	same([]sdk.Collection{{Name: "k", Entries: 2, Dimension: 2}}, all, err)
	err = store.Drop(ctx, "k")
	if coded := new(sdk.Error); !errors.As(err, &coded) || coded.Code != sdk.CodeTransient || coded.RetryAfter != 2*time.Second {
		t.Errorf("got %v", err)
	}
}

// replayOthers replays the methods that describe a stage.
func replayOthers(t *testing.T) {
	t.Helper()
	server := serve.NewServer(reference, slog.New(slog.DiscardHandler))
	t.Cleanup(server.Close)
	call := func(request, reply proto.Message, method string) {
		t.Helper()
		conn := listen(t, server.Register)
		request = example(t, method+".request", request)
		must.Do(t, conn.Invoke(t.Context(), "/racflow.stage.v2.Stage/"+method, request, reply))
		example(t, method+".reply", reply)
	}
	described := &stagepb.DescribeReply{}
	call(&stagepb.DescribeRequest{}, described, "Describe")
	p := must.Get(wire.DecodePlugin(described))(t)
	must.Equal(t, "number of stages", len(reference.Stages), len(p.Stages))
	must.Equal(t, "what stages read, attach and leave pending", []any{sdk.Of(sdk.ColumnText), "collection", true}, []any{p.Stages[2].FitReads, p.Stages[3].Attaches, p.Stages[6].Pends})
	config := []byte(`{"precision": "int8", "sharpness": 20}`)
	call(&stagepb.ValidateRequest{Kind: stagepb.Kind_KIND_SAMPLE, Name: "first", ConfigJson: config}, &stagepb.ValidateReply{}, "Validate")
	call(&stagepb.ConfigureRequest{
		Kind: stagepb.Kind_KIND_SAMPLE, Name: "first", Block: "mine", ConfigJson: []byte(`{"sharpness": 2}`), StateDir: "/home/me/.racflow/stages/intent/mine", Samples: 1,
		Host:   &stagepb.HostAddress{Address: "unix:/tmp/racflow/host", Token: "a random text"},
		Labels: &stagepb.LabelForm{Many: true},
	}, &stagepb.ConfigureReply{}, "Configure")
	call(&stagepb.AliveRequest{}, &stagepb.AliveReply{}, "Alive")
}

// checked is the service Host with the examples between its ends.
type checked struct {
	*wire.HostService
	t *testing.T
}

func (c checked) CacheGet(ctx context.Context, req *stagepb.CacheGetRequest) (*stagepb.CacheGetReply, error) {
	reply, err := c.HostService.CacheGet(ctx, example(c.t, "CacheGet.request", req))
	return example(c.t, "CacheGet.reply", reply), err
}

func (c checked) CachePut(ctx context.Context, req *stagepb.CachePutRequest) (*stagepb.CachePutReply, error) {
	reply, err := c.HostService.CachePut(ctx, example(c.t, "CachePut.request", req))
	return example(c.t, "CachePut.reply", reply), err
}

func (c checked) ProfileGet(ctx context.Context, req *stagepb.ProfileGetRequest) (*stagepb.ProfileGetReply, error) {
	reply, err := c.HostService.ProfileGet(ctx, example(c.t, "ProfileGet.request", req))
	return example(c.t, "ProfileGet.reply", reply), err
}

func (c checked) ProfilePut(ctx context.Context, req *stagepb.ProfilePutRequest) (*stagepb.ProfilePutReply, error) {
	reply, err := c.HostService.ProfilePut(ctx, example(c.t, "ProfilePut.request", req))
	return example(c.t, "ProfilePut.reply", reply), err
}

func (c checked) Acquire(stream stagepb.Host_AcquireServer) error {
	return c.HostService.Acquire(&checkedStream{Host_AcquireServer: stream, t: c.t})
}

type checkedStream struct {
	stagepb.Host_AcquireServer
	t    *testing.T
	come int
}

func (c *checkedStream) Recv() (*stagepb.AcquireRequest, error) {
	request, err := c.Host_AcquireServer.Recv()
	if err != nil {
		return nil, err
	}
	c.come++
	return example(c.t, []string{"", "Acquire.request", "Acquire-result.request"}[c.come], request), nil
}

func (c *checkedStream) Send(reply *stagepb.AcquireReply) error {
	return c.Host_AcquireServer.Send(example(c.t, "Acquire.reply", reply))
}

func replayHost(t *testing.T) {
	t.Helper()
	e := &engine{kept: map[sdk.Key][]byte{}, profiles: map[string]json.RawMessage{}, slot: make(chan struct{}, 1), ended: make(chan sdk.Result, 1)}
	host, _ := startWith(t, e, func(s *wire.HostService) func(*grpc.Server) {
		return func(g *grpc.Server) { stagepb.RegisterHostServer(g, checked{s, t}) }
	})
	key := sdk.KeyOf("http://model.example/v1", "a question")
	if err := host.CachePut(t.Context(), key, []byte("an answer")); err != nil {
		t.Error(err)
	}
	if values, err := host.CacheGet(t.Context(), []sdk.Key{key, {}}); err != nil || string(values[0]) != "an answer" || values[1] != nil {
		t.Errorf("got %q, %v", values, err)
	}
	if err := host.KeepProfile(t.Context(), "http://model.example/v1", "a-model", json.RawMessage(`{"thinking": true}`)); err != nil {
		t.Error(err)
	}
	if profile, err := host.Profile(t.Context(), "http://model.example/v1", "a-model"); err != nil || string(profile) != `{"thinking": true}` {
		t.Errorf("got %s, %v", profile, err)
	}
	release, err := host.Acquire(t.Context(), sdk.Call{Endpoint: "http://model.example/v1", Tokens: 120, Most: sdk.Usage{InputTokens: 400, OutputTokens: 20}, Batch: true, Alternative: true})
	must.Do(t, err)
	result := sdk.Result{Status: sdk.StatusBusy, RetryAfter: time.Second, Usage: sdk.Usage{InputTokens: 98}, Reason: "429: slow down"}
	release(result)
	if got := <-e.ended; got != result {
		t.Errorf("got %+v", got)
	}
}
